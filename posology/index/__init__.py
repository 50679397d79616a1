"""Embedders, the table in LanceDB, ingest, BM25, fusion and the retriever."""
