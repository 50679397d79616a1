"""Ingest of corpus files into an index: batches, rows, progress."""
