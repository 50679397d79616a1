"""Our ledger against a provider's own account of what was used: see ``docs/reconciliation.md``."""
