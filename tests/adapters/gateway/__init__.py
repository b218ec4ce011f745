"""The tests of the gateway runtime."""
