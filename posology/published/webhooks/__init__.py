"""Webhooks as JSON: messages, the endpoints that receive them, and failures."""
