"""Readers of literature files, and the sample corpus."""
