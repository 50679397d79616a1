"""Operations on a ledger: read, audit, repair, export, archive."""
