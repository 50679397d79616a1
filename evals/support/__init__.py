"""Whether the sentences that are called supported are."""
