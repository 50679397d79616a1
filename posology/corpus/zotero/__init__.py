"""Zotero's libraries: asked from its local or its web API, mirrored, and read with their attachments."""
