"""Budgets, the ledger, and the bounds and estimates of a call."""
