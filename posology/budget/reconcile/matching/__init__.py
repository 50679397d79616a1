"""Puts both sides beside each other: by days and models, and request by request."""
