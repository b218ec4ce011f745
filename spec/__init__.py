"""The laws of job leases, and what proves that the core keeps them."""
