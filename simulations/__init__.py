"""Virtual time, faults and designs under test: where the laws are tried on whole systems."""
