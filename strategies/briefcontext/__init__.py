"""BriefContext: map-reduce RAG over partitions of the retrieved passages."""
