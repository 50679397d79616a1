"""Processes that a run is made of: the provider, Redis, the network between, and the stack."""
