"""Redis: the connection, the names of what stands there, and the scripts that change it."""
