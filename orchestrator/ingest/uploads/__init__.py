"""Uploads of literature: files that tenants send over HTTP, and the process that ingests them."""
