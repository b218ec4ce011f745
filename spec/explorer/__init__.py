"""Searches every schedule of a small world: two instances, one job, and what can go wrong."""
