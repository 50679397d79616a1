"""Tiny models with random weights, in the file formats of real ones."""
