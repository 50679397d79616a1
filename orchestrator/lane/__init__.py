"""The batch lane: calls that a provider answers within a day, many at once, at a lower price.

:mod:`~orchestrator.lane.collector` makes providers' batches of wanted calls, polls them and settles their rows, for whatever keeps
records of them (:mod:`~orchestrator.lane.records`): Redis for jobs, a file for a paid run.
"""
