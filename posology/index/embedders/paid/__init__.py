"""Paid embedders: their calls are reserved, sent, settled and listed like all others."""
