"""Watches: questions that are asked anew when the index has changed."""
