"""The pure core of unswept: job states, lease rules, and what an instance knows and decides.

It does no I/O and reads no clock, no randomness and no global state, so that a proof, a simulation
and a gateway run the very same functions.
"""
