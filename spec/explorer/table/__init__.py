"""Searches the table: every command that could be on its way, in every state of a few jobs."""
