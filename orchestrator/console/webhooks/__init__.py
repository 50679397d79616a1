"""Pages of the endpoints of webhooks."""
