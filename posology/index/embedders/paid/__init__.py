"""Vectors that are bought: calls for them are reserved, sent, settled and listed as all others are."""
