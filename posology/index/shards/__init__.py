"""Distributed encoding: any number of workers turn batches of passages into rows, and one writer collects them.

A *shard* holds the passages of a batch that the index lacks. The writer stores its texts beside the index, a worker
stores the rows beside them, and the writer puts the rows into the index in the order of the batches
(``docs/how-to/distributed-ingest.md``).
"""
