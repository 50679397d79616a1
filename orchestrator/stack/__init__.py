"""The embedded stack of ``posology up``: Redis, workers and the API as one tree of processes."""
