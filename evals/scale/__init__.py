"""Indices from 10,000 to a million passages."""
