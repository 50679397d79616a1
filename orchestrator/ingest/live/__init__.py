"""Fetches from literature services: by commands into folders of this machine, and for tenants into the index."""
