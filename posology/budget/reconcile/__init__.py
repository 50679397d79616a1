"""Reconciliation: our ledger against a provider's own account of usage, see ``docs/how-to/reconciliation.md``."""
