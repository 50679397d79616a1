"""Redis: the connection, the names of keys, and the scripts. Also the persistent cache."""
