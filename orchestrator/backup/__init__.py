"""Backups of a running service."""
