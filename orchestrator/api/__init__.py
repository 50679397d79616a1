"""The HTTP API: jobs, batches, health and metrics over one job store."""
