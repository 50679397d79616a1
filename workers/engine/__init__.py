"""The engine of a worker: runs units of jobs, keeps leases, recovers lost work."""
