"""Every accepted job has one outcome, and one answer."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from evals.fire.checker.evidence import Finding, Kind, Run
from evals.fire.checker.views import OVER, Exchange, View, exchanges, of, views

#: exit status of a command that met an error which it does not know
_DEFECT = 70


def outcomes(run: Run) -> Iterator[Finding]:
    """Compare what was shown of every job."""
    asked = exchanges(run)
    retried = _retried(asked)
    for job, seen in views(run).items():
        yield from _one(job, seen, retried.get(job, ()))
    yield from _batches(asked)
    yield from _uploads(asked)
    yield from _keys(asked)
    for exchange in asked:
        yield from _events(exchange)
        yield from _internal(exchange)
    for record in run.of("command"):
        if record["status"] == _DEFECT:
            detail = (
                f"posology {record['command']} ended with exit status {_DEFECT} at {record['at']}"
            )
            yield Finding(kind=Kind.INTERNAL_ERROR, detail=detail)
    for record in run.of("drill"):
        if record["status"] not in record["may"]:
            detail = f"{record['page']}: posology {record['command']} ended with exit status {record['status']}"
            yield Finding(kind=Kind.RUNBOOK, detail=detail)
    for record in run.of("stack ended"):
        detail = f"posology up ended with exit status {record['status']} at {record['at']}"
        yield Finding(kind=Kind.STACK_ENDED, detail=detail)


def _one(job: str, seen: Sequence[View], retried: Sequence[int]) -> Iterator[Finding]:
    """A job's views: once it has ended, later requests see the same end, unless it was retried."""
    known = [view for view in seen if view.state is not None]
    ended = [view for view in known if view.state in OVER]
    if not ended or (known[-1].state not in OVER and known[-1].asked > ended[-1].told):
        last = known[-1].state if known else "unknown"
        yield Finding(kind=Kind.LOST_JOB, detail=f"{job} was accepted and is {last} at the end")
    for before, after in pairwise(known):
        if before.state not in OVER or after.asked < before.told:
            continue
        if any(before.asked < place < after.told for place in retried):
            continue
        if after.state != before.state:
            detail = f"{job} was {before.state} (reply {before.told}) and then {after.state} (reply {after.told})"
            yield Finding(kind=Kind.SECOND_OUTCOME, detail=detail)
    answers = [view for view in known if view.result is not None]
    for before, after in pairwise(answers):
        if any(before.asked < place < after.told for place in retried):
            continue
        if _text(before.result) != _text(after.result):
            detail = (
                f"{job} showed another answer in reply {after.told} than in reply {before.told}"
            )
            yield Finding(kind=Kind.CHANGED_ANSWER, detail=detail)


def _retried(asked: Sequence[Exchange]) -> dict[str, list[int]]:
    """Requests to run a job again. One whose reply was lost may have been obeyed."""
    found: dict[str, list[int]] = defaultdict(list)
    for exchange in asked:
        for job in exchange.request.get("retries", ()):
            found[job].append(exchange.request["n"])
    return found


def _batches(asked: Sequence[Exchange]) -> Iterator[Finding]:
    """A row of an accepted batch is a job, or was rejected."""
    total: dict[str, int] = {}
    rows: dict[str, set[int]] = defaultdict(set)
    for exchange in asked:
        body = exchange.reply and exchange.reply.get("body")
        if not isinstance(body, dict):
            continue
        if str(body.get("id")).startswith("batch_"):
            total[body["id"]] = body["total"]
        if batch := exchange.request.get("rows_of"):
            shown = body.get("rows", ())
            rows[batch] |= {row["row"] for row in shown if row["job"] or row["error"]}
    for batch, count in total.items():
        if len(rows[batch]) != count:
            detail = f"{batch} was accepted with {count} rows and has {len(rows[batch])} at the end"
            yield Finding(kind=Kind.LOST_JOB, detail=detail)


def _uploads(asked: Sequence[Exchange]) -> Iterator[Finding]:
    """An accepted file is ingested, or is given up with a reason that is the file's."""
    last: dict[str, Any] = {}
    for exchange in asked:
        body = exchange.reply and exchange.reply.get("body")
        if isinstance(body, dict) and str(body.get("id")).startswith("ingest_"):
            last[body["id"]] = body
    for name, upload in last.items():
        if upload["state"] not in OVER:
            detail = f"{name} was accepted and is {upload['state']} at the end"
            yield Finding(kind=Kind.LOST_JOB, detail=detail)
        elif (upload["error"] or {}).get("type") == "Defect":
            detail = f"{name}: {upload['error']['message']}"
            yield Finding(kind=Kind.INTERNAL_ERROR, detail=detail)


def _internal(exchange: Exchange) -> Iterator[Finding]:
    """No reply says that the service, or a job of it, met an error that it does not know."""
    reply = exchange.reply
    if reply is None:
        return
    body = reply.get("body")
    error = body.get("error") if isinstance(body, dict) else None
    message = str(error.get("message")) if isinstance(error, dict) else ""
    by_command = exchange.request["way"] == "cli" and reply["status"] == _DEFECT
    if reply["status"] == 500 or by_command or message.startswith("internal error"):
        detail = (
            f"reply {reply['n']} to {exchange.request.get('path')}: {message or reply['status']}"
        )
        yield Finding(kind=Kind.INTERNAL_ERROR, detail=detail)


def _keys(asked: Sequence[Exchange]) -> Iterator[Finding]:
    """The same tenant and key are the same job or batch."""
    made: dict[tuple[str, str], set[str]] = defaultdict(set)
    for exchange in asked:
        key = exchange.request.get("key")
        if key is None or exchange.reply is None:
            continue
        body = exchange.reply.get("body")
        names = {view.job for view in of(exchange)}
        if isinstance(body, dict) and str(body.get("id")).startswith("batch_"):
            names = {body["id"]}
        made[exchange.request["tenant"], key] |= names
    for (tenant, key), names in made.items():
        if len(names) > 1:
            detail = f"key {key} of {tenant} made {', '.join(sorted(names))}"
            yield Finding(kind=Kind.DOUBLED_JOB, detail=detail)


def _events(exchange: Exchange) -> Iterator[Finding]:
    """A job is queued before it ends, and ends once."""
    reply = exchange.reply
    events = reply and isinstance(reply.get("body"), dict) and reply["body"].get("events")
    if not events:
        return
    states = [event["data"]["state"] for event in events if event["type"] == "state"]
    job, open_ = exchange.request["events_of"], exchange.request.get("after") is not None
    for place, state in enumerate(states):
        if state == "queued":
            open_ = True
        elif state in OVER:
            if not open_:
                kind = Kind.SECOND_OUTCOME if place else Kind.EARLY_OUTCOME
                yield Finding(kind=kind, detail=f"events of {job}: {', '.join(states)}")
                return
            open_ = False


def _text(result: Any) -> str:
    return json.dumps(result, sort_keys=True)
