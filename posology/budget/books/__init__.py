"""Maintenance of a ledger: audit, rebuild, export, archive."""
