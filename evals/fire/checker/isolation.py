"""No tenant sees a word of another one: each has a word of its own in all that it says."""

from __future__ import annotations

from collections.abc import Iterator

from evals.fire.checker.evidence import Finding, Kind, Run
from evals.fire.checker.money import attempts
from evals.fire.checker.views import exchanges


def isolation(run: Run) -> Iterator[Finding]:
    """Look for foreign words in replies, and in what the provider was sent."""
    words = {record["tenant"]: record["word"] for record in run.of("tenant")}
    for exchange in exchanges(run):
        tenant, reply = exchange.request["tenant"], exchange.reply
        if reply is None:
            continue
        for other, word in words.items():
            if other != tenant and word in reply["words"]:
                detail = f"reply {reply['n']} to {tenant} has the word of {other}"
                yield Finding(kind=Kind.LEAK, detail=detail)
    ours = attempts(run.ledger)
    for request in run.books:
        attempt = ours.get(str(request["client_id"]))
        if attempt is None:
            continue
        foreign = [word for word in request["words"] if word != words.get(attempt.tenant)]
        if foreign:
            detail = f"attempt {attempt.id} of {attempt.tenant} sent {', '.join(foreign)}"
            yield Finding(kind=Kind.LEAK, detail=detail)
