"""Tests of the simulator and of the conformance kit."""
