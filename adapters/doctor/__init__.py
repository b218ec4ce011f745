"""Looks at a store and judges it for whoever operates it; nothing in it is changed."""
