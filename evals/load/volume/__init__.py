"""What one Redis carries: queued jobs, entries of ledgers, processes and tenants at rest."""
