"""Commands around stored answers."""
