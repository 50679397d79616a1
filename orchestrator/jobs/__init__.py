"""Jobs: their records in Redis, and what may happen to them.

:mod:`~orchestrator.jobs.store` is the submitter's side, :mod:`~workers.engine.claims` the worker's. Both
change records by Lua scripts only, one a change, so that no two processes can decide on the same state.
"""
