"""What keeps an index for one writer: a file's lock, or an object's lease."""
