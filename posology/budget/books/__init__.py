"""What is done with a ledger: read, held against its counters, put right, exported, archived."""
