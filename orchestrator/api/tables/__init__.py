"""Evidence tables over HTTP."""
