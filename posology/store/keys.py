"""The names under which things stand in Redis.

All keys of a tenant carry its name as hash tag, so that they share one slot of a cluster and one script
can change them together.
"""

from __future__ import annotations

import re
import secrets
import socket
import time
from datetime import UTC, datetime

from posology.errors import InvalidQuery

#: tenants that were created, and names of which somebody tried to
REGISTERED = "posology:tenants:registered"
#: tenants that may have records, by when they last submitted, milliseconds
TENANTS = "posology:tenants:listed"
#: tenants that were taken off that list at some time
PAST = "posology:tenants:past"
#: tenants that have spent by runs that are no jobs
SPENDERS = "posology:tenants:spenders"
#: tenants that may have waiting jobs
WAITING = "posology:tenants:waiting"
#: a token for whoever waits for jobs
WAKE = "posology:wake"
#: worker processes by when they last told of themselves, milliseconds
WORKERS = "posology:workers"
#: when a worker last swept, milliseconds
SWEPT = "posology:swept"
#: there while an ended lease tells nothing
AMNESTY = "posology:amnesty"
DEFAULT_TENANT = "default"
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def prefix(tenant: str) -> str:
    """What every key of a tenant starts with.

    Raises:
        InvalidQuery: no tenant can have that name.
    """
    if not _TENANT.fullmatch(tenant):
        raise InvalidQuery(
            f"no tenant can be called {tenant!r}: up to 64 letters, digits, '_', '.' and '-'",
            field="tenant",
        )
    return f"posology:{{{tenant}}}:"


def purse(tenant: str, job: str) -> str:
    """Where a job's counters of money stand, or those of a run that is none.

    Raises:
        InvalidQuery: no tenant can have that name.
    """
    kind = "job" if job.startswith("job_") else "run"
    return f"{prefix(tenant)}{kind}:{job}"


def api_key(key_id: str) -> str:
    """Where it stands whose an API key is; it is looked up before the tenant is known."""
    return f"posology:key:{key_id}"


def worker(pid: int) -> str:
    """The name of a worker process of this machine."""
    return f"{socket.gethostname()}:{pid}"


def new_id(kind: str) -> str:
    """An id that sorts by the time it was made, e.g. ``job_0199…``."""
    return f"{kind}_{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"


def at(milliseconds: str | float) -> datetime:
    """The time of a number of milliseconds since 1970, UTC."""
    return datetime.fromtimestamp(float(milliseconds) / 1000, UTC)
