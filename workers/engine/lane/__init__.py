"""The batch lane: calls of jobs that a provider answers within a day, many at once, at a lower price.

A unit of a job in this lane runs as any other, but a call without a stored reply is not sent: it is *wanted*
(:mod:`~workers.engine.lane.calls`), and the unit is parked. The collector (:mod:`~workers.engine.lane.collector`)
reserves the worst cases of wanted calls, writes down the provider's batch that they go into, and creates it; then it
polls the batch and settles its rows (:mod:`~workers.engine.lane.rows`). The replies are stored with the job, the unit
runs again, and its calls are replayed: so a strategy knows nothing of lanes, and one of two steps takes two batches.
"""
