"""Pages of money: limits and spending, and the ledger with its audit."""
