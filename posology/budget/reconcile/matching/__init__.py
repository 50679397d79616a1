"""Comparison of both sides: by days and models, and request by request."""
