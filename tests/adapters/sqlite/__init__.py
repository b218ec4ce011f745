"""The tests of the store on one SQLite file."""
