"""Pages of operators: tenants with their limits and keys, reconciliations, and workers."""
