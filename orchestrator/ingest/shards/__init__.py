"""Distributed ingest: leases of shards in Redis, and the writer's queue."""
