"""Tables over HTTP: their records and bytes, the articles of the index that they read, and the task that reads them."""
