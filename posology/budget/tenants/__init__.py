"""Tenants: limits, API keys, and rate limits."""
