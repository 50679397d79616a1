"""Search of an index: dense, BM25, fused; filters and folding of copies."""
