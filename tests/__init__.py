"""The tests of unswept; the folders mirror those of the library."""
