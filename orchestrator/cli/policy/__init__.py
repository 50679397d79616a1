"""``posology policy``: train, show, compare, replay and promote policies."""
