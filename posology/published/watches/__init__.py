"""Watches as JSON."""
