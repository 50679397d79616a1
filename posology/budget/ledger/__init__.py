"""The ledger: reservations, settlements, and their entries."""
