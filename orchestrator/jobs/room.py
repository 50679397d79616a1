"""Room for a tenant's jobs: how many may wait, and how much of Redis they may occupy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from posology.errors import QueueFull

#: bytes of a mebibyte
MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """Limits of every tenant without limits of its own."""

    #: waiting jobs
    queued: int = 200_000
    #: mebibytes of Redis that jobs and batches occupy until their records expire
    stored: int = 1_024


def raise_if_full(reply: Sequence[str | int], tenant: str) -> None:
    """Raise the error of a submission without room; other replies are ignored.

    Args:
        reply: a word; for a refusal also the limit's name, its value, the present use, what the submission asks for, and
            milliseconds until there may be room.
        tenant: name of the tenant.

    Raises:
        QueueFull: the tenant has too many waiting jobs, or its jobs occupy too much of Redis.
    """
    if reply[0] != "full":
        return
    name, (limit, used, asked, after) = str(reply[1]), map(int, reply[2:6])
    if name == "queued":
        what = f"{used:,} of {limit:,} jobs of {tenant} wait, and this submission has {asked:,}"
        way = "wait for jobs to end, send fewer, or ask for a higher limit"
    else:
        limit, used, asked = (-(-n // MIB) for n in (limit, used, asked))
        what = f"records of {tenant} occupy {used:,} of {limit:,} MiB, and this submission needs {asked:,}"
        way = "wait until old records expire, send less, or ask for a higher limit"
    raise QueueFull(
        f"{what}: {way}",
        limit=name,
        allowed=limit,
        used=used,
        asked=asked,
        retry_after=max(1.0, after / 1000),
    )
