"""Watches over HTTP."""
