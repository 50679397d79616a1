"""Late interaction: compressed token vectors in the index, and the pruner that scores sentences by them."""
