"""Tables over HTTP: their folder, the articles of the index that they read, and the thread that reads them."""
