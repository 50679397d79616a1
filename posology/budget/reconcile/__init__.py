"""Our ledger against a provider's own account of what was used: see ``docs/how-to/reconciliation.md``."""
