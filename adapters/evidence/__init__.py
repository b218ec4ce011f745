"""What stands behind each law, read from the runs' own records, as one page for a reviewer."""
