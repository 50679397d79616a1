"""Replies of providers as they come: texts, ends and errors."""
