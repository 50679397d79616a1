"""Names of keys in Redis.

All keys of a tenant have its name as hash tag: they share one slot of a cluster, so one script can change
them together.
"""

from __future__ import annotations

import re
import secrets
import socket
import time
from datetime import UTC, datetime

from posology.errors import InvalidQuery

#: created tenants, and names whose creation was tried
REGISTERED = "posology:tenants:registered"
#: tenants that may have records, by the time of their last submission, milliseconds
TENANTS = "posology:tenants:listed"
#: tenants removed from that list
PAST = "posology:tenants:past"
#: tenants that have spent by runs in process
SPENDERS = "posology:tenants:spenders"
#: tenants that may have waiting jobs
WAITING = "posology:tenants:waiting"
#: tenants that may have calls for providers' batches
LANE = "posology:tenants:lane"
#: tenants that may have endpoints of webhooks
WEBHOOKS = "posology:tenants:webhooks"
#: tenants that may have watches
WATCHES = "posology:tenants:watches"
#: endpoints of webhooks that are owed messages, ``tenant|endpoint``, by the time of the next attempt, milliseconds
DUE = "posology:webhooks:due"
#: present for a while after a look at the endpoints of all tenants
LOOKED = "posology:webhooks:looked"
#: steps of maintenance of which one is enough for all processes: each is present for a while after it was done
SWEEP, TIDY, BATCHES, WATCHING = TURNS = (
    "posology:turn:sweep",
    "posology:turn:tidy",
    "posology:turn:batches",
    "posology:turn:watches",
)
#: a token that wakes a waiting worker
WAKE = "posology:wake"
#: worker processes by their last heartbeat, milliseconds
WORKERS = "posology:workers"
#: those of them that answer jobs, not only calls or shards of an ingest
ANSWERING = "posology:answering"
#: processes that ingest uploads and read tables, by their last heartbeat, milliseconds
READERS = "posology:readers"
#: time of the last sweep, milliseconds
SWEPT = "posology:swept"
#: present while an expired lease is ignored; since when, milliseconds
AMNESTY = "posology:amnesty"
#: time of the last sweep that looked whether the clock of Redis was put back, milliseconds: versions that do not look write
#: :data:`SWEPT`, too
CLOCK = "posology:clock"
#: present for a while after the clock of Redis was put back
PUT_BACK = "posology:put_back"
DEFAULT_TENANT = "default"
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def prefix(tenant: str) -> str:
    """Return the prefix of every key of a tenant.

    Raises:
        InvalidQuery: the name is malformed.
    """
    if not _TENANT.fullmatch(tenant):
        raise InvalidQuery(
            f"{tenant!r} is not a tenant's name: use up to 64 letters, digits, '_', '.' and '-', a letter or digit first",
            field="tenant",
        )
    return f"posology:{{{tenant}}}:"


def budget(tenant: str, job: str) -> str:
    """Return the key of the counters of a job's budget, or of a run's in process.

    Raises:
        InvalidQuery: the name is malformed.
    """
    kind = "job" if job.startswith("job_") else "run"
    return f"{prefix(tenant)}{kind}:{job}"


def api_key(key_id: str) -> str:
    """Return the key of the record that maps an API key to its tenant."""
    return f"posology:key:{key_id}"


def console_session(digest: str) -> str:
    """Return the key of a session of the console, by the SHA-256 of its token."""
    return f"posology:console:{digest}"


def console_sessions(owner: str) -> str:
    """Return the key of the list of sessions of one owner: a tenant, or the operator."""
    return f"posology:console:sessions:{owner}"


def console_failures(address: str) -> str:
    """Return the key of the number of sign-ins that failed from an address in this minute."""
    return f"posology:console:failures:{address}"


def console_return(digest: str) -> str:
    """Return the key that marks a return from the sign-in provider as used, by the SHA-256 of its state."""
    return f"posology:console:return:{digest}"


def worker(pid: int) -> str:
    """Return the name of a worker process of this machine."""
    return f"{socket.gethostname()}:{pid}"


def new_id(kind: str) -> str:
    """Return an id that sorts by its time, e.g. ``job_0199…``."""
    return f"{kind}_{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"


def at(milliseconds: str | float) -> datetime:
    """Return the time of POSIX milliseconds, UTC."""
    return datetime.fromtimestamp(float(milliseconds) / 1000, UTC)
