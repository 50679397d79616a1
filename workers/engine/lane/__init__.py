"""Calls of jobs by way of the batch lane (:mod:`orchestrator.lane`).

A unit of a job in this lane runs as any other, but a call without a stored reply is not sent: it is *wanted*
(:mod:`~workers.engine.lane.calls`), and the unit is parked. The lane's collector reserves the worst cases of wanted
calls, records the provider's batch that they go into, and creates it; then it polls the batch and settles its rows. The
replies are stored with the job, the unit runs again, and its calls are replayed: so a strategy knows nothing of lanes, and
one of two steps takes two batches.
"""
