"""The laws restated over symbolic leases, each with a broken twin that must be refuted."""
