"""A fleet under chaos: real runners share a queue while they are killed, and what held."""
