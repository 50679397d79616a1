"""Webhooks: endpoints of tenants, and signed messages to them."""
