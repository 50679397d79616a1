"""``posology ingest``, ``sync`` and ``index``: literature in, versions out."""
