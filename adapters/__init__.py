"""What carries the pure core to the outside world: stores, runtimes and the command line."""
