"""The statements, scripts and migrations that every SQL store shares."""
