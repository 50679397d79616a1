"""Formats of providers' exports: one module for each provider, and one for rows of single requests."""
