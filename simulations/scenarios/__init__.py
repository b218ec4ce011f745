"""How job leases fail in the field, as stories that every store must tell alike."""
