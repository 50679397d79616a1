"""Sync and rebuild of an index from a folder of files."""
