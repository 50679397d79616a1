"""Late interaction: token vectors kept compressed in the index, and what scores sentences by them."""
