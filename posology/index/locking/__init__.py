"""Write lock of an index: a file lock, or a lease on object storage."""
