"""Archives of ledgers: entries moved into files, chained by digests, and inspected."""
