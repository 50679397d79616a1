"""Support of every sentence of an answer by the quotes behind it."""
