"""Leased work in Redis: one set of scripts for shards, ingests and tables."""
