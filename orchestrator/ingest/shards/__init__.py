"""Shards of an ingest on workers: their leases in Redis, and the writer's queue."""
