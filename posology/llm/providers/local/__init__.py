"""Servers of one's own: what they serve, and calls to them."""
