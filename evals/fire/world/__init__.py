"""What a run is made of: its documents, and the processes: the provider, Redis, the network between, and the stack."""
