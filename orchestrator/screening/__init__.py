"""Screening of search results: reading order, decisions of readers, a statement of recall, counts for a flow diagram."""
