"""Ingest and sync with the configured embedder, in this process or on workers."""
