"""Commands that write and inspect an index: ``ingest``, ``sync`` and ``index``."""
