"""Judges a database, or its exported events, by the laws: what history can show, and what not."""
