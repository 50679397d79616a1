"""Compressors that call a model to rewrite passages."""
