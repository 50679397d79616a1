"""The prompt of evidence tables."""
