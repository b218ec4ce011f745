"""Runs the theorems, and states those that say that the SQL is the core."""
