"""The `unswept` command line."""
