"""Holds stores and runs against the specification: traces are replayed, and behaviours judged."""
