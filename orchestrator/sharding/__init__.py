"""Shards on workers: what Redis knows of them, a worker's part, and the writer's."""
