"""Pages of the console, and a store with many jobs, for the benchmark and the test in a browser."""

from __future__ import annotations

from typing import Any, cast

from orchestrator.jobs.store import JobStore
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from posology.store import keys

#: jobs that one run of the script writes: a second of Redis's time at most
_AT_ONCE = 5_000
#: keys of a job that waits, after its record's
_PARTS = ("", ":units", ":events")
#: writes ARGV[1] jobs like ARGV[2] under KEYS[1], the tenant's prefix, numbered from ARGV[3] on, and lists them where it is
#: listed; the ends of the names of its keys follow
FILL = """
local P, like = KEYS[1], KEYS[1] .. 'job:' .. ARGV[2]
local state, deadline, bytes = unpack(redis.call('HMGET', like, 'state', 'deadline', 'bytes'))
for i = 0, tonumber(ARGV[1]) - 1 do
  local id = string.format('job_%028x', tonumber(ARGV[3]) + i)
  for part = 4, #ARGV do redis.call('COPY', like .. ARGV[part], P .. 'job:' .. id .. ARGV[part]) end
  redis.call('HSET', P .. 'job:' .. id, 'id', id)
  redis.call('ZADD', P .. 'jobs', 0, id)
  redis.call('ZADD', P .. 'state:' .. state, 0, id)
  redis.call('ZADD', P .. 'deadlines', deadline, id)
  redis.call('RPUSH', P .. 'waiting', id)
end
redis.call('INCRBY', P .. 'stored', bytes * ARGV[1])
return redis.call('ZCARD', P .. 'jobs')
"""


async def fill(
    store: JobStore,
    tenant: str,
    count: int,
    question: str = "Does it help?",
    *,
    patience: float = 900.0,
) -> int:
    """Submit a job, and write others like it; return the tenant's number of jobs.

    Args:
        store: the job store.
        tenant: name of the tenant.
        count: jobs to write, with ids before those of present ones.
        question: question of all of them.
        patience: seconds until the deadline of all.
    """
    asked = JobRequest(
        question=question, model="offline:extractive", deadline_seconds=patience
    ).settled(Settings())
    made, found = await store.submit(asked, tenant=tenant), 0
    for start in range(1, count, _AT_ONCE):
        wanted = (min(_AT_ONCE, count - start), made.job, start, *_PARTS)
        filled = store.redis.eval(FILL, 1, keys.prefix(tenant), *wanted)
        found = int(await cast("Any", filled))
    return found


def pages(
    *,
    job: str,
    replayed: str,
    batch: str,
    webhook: str,
    tenant: str,
    run: str,
    report: str,
    passage: str,
) -> dict[str, str]:
    """Return the paths of all pages that a single user sees, by name.

    Args:
        job: id of an answered job.
        replayed: id of a job that is replayed.
        batch: id of a batch.
        webhook: id of an endpoint.
        tenant: name of a tenant.
        run: folder of an evaluation.
        report: file of a reconciliation.
        passage: id of a passage.
    """
    return {
        "ask": "/console/ask",
        "jobs": "/console/jobs",
        "queued jobs": "/console/jobs?state=queued",
        "job": f"/console/jobs/{job}",
        "replay": f"/console/jobs/{replayed}/replay",
        "batches": "/console/batches",
        "batch": f"/console/batches/{batch}",
        "money": "/console/money",
        "ledger": "/console/money/ledger",
        "webhooks": "/console/webhooks",
        "webhook": f"/console/webhooks/{webhook}",
        "literature": "/console/literature",
        "contents": "/console/literature/contents",
        "changed evidence": "/console/literature/changed",
        "passage": f"/console/literature/passages/{passage}",
        "compare": "/console/compare",
        "evaluation": f"/console/compare/{run}",
        "tenants": "/console/tenants",
        "tenant": f"/console/tenants/{tenant}",
        "reconciliations": "/console/reconciliations",
        "reconciliation": f"/console/reconciliations/{report}",
        "workers": "/console/workers",
    }
