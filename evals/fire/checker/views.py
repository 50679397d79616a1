"""Jobs in the replies of a service, whichever way they came."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals.fire.checker.evidence import Record, Run

#: states that end a job
OVER = frozenset({"succeeded", "failed", "cancelled", "expired"})


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """A job as one reply showed it."""

    job: str
    #: ``None``: the reply named the job alone
    state: str | None
    #: the answer as JSON; ``None``: not shown
    result: Any
    tenant: str
    #: places of request and reply in the records
    asked: int
    told: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """A request and its reply."""

    request: Record
    #: ``None``: none came
    reply: Record | None


def exchanges(run: Run) -> list[Exchange]:
    """Return requests with their replies, in the order of the requests."""
    replies = {record["to"]: record for record in run.of("reply")}
    return [
        Exchange(request=request, reply=replies.get(request["n"])) for request in run.of("request")
    ]


def views(run: Run) -> dict[str, list[View]]:
    """Return what was shown of every job, in the order of the replies."""
    found: dict[str, list[View]] = defaultdict(list)
    for exchange in exchanges(run):
        for view in of(exchange):
            found[view.job].append(view)
    for seen in found.values():
        seen.sort(key=lambda view: view.told)
    return dict(found)


def of(exchange: Exchange) -> Iterator[View]:
    """Yield the jobs in a reply."""
    request, reply = exchange.request, exchange.reply
    if reply is None or reply.get("body") is None:
        return
    for job, state, result in _jobs(reply["body"]):
        yield View(
            job=job,
            state=state,
            result=result,
            tenant=request["tenant"],
            asked=request["n"],
            told=reply["n"],
        )


def _jobs(node: Any) -> Iterator[tuple[str, str | None, Any]]:
    if isinstance(node, Mapping):
        names = [name for name in (node.get("job"), node.get("id")) if _is_job(name)]
        if names:
            yield str(names[0]), _state(node), node.get("result")
            return
        for value in node.values():
            yield from _jobs(value)
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for value in node:
            yield from _jobs(value)


def _is_job(name: Any) -> bool:
    return isinstance(name, str) and name.startswith("job_")


def _state(node: Mapping[str, Any]) -> str | None:
    state = node.get("state")
    return state if isinstance(state, str) else None
