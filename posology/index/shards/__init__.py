"""Encoding elsewhere: batches of passages that any number of workers turn into rows, and one writer collects.

A *shard* is the passages of a batch that the index lacks. The writer lays its texts beside the index, a worker lays
the rows beside them, and the writer puts the rows into the index when it is the batch's turn
(``docs/how-to/distributed-ingest.md``).
"""
