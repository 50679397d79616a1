"""Events of a job in words, while it is under way."""

from __future__ import annotations

from orchestrator.rendering.words import safe
from posology.published.jobs import JobEvent

_STATES = {
    "queued": "Waiting in the queue.",
    "running": "Retrieving passages.",
    "reducing": "Combining the findings.",
}


def stage_of(event: JobEvent, *, reason: str | None = None) -> str | None:
    """Return an event as one line; ``None``: a reader who waits for the answer need not know it.

    Args:
        event: event of a job.
        reason: reason of its decision; ``None``: it is left out.
    """
    data = event.data
    match event.type:
        case "state":
            return _STATES.get(data["state"])
        case "decided":
            why = "" if reason is None else f": {safe(reason)}"
            return f"Strategy {data['strategy']}{why}"
        case "partition":
            read = "could not be read" if data["failed"] else "read"
            done = data["read"] + data["unread"]
            return f"Partition {data['partition'] + 1} {read} ({done} of {data['partitions']})."
        case "call":
            return f"Model call {data['call']}, attempt {data['attempt']} ({data['stage']}): {data['outcome']}."
        case _:
            return None
