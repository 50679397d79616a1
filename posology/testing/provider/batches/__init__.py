"""Batches of a stub provider."""
