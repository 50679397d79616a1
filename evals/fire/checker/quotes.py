"""Every shown quote is at its place in the passage of the version that the answer names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from evals.fire.checker.evidence import Finding, Kind, Run
from evals.fire.checker.views import views


def quotes(run: Run, counted: list[int]) -> Iterator[Finding]:
    """Compare quotes with passages, and passages with the documents that were handed over.

    Args:
        run: the records.
        counted: takes the number of quotes.
    """
    written = _written(run)
    passages = _passages(run)
    for (version, name), text in passages.items():
        if name in written and text not in written[name]:
            detail = f"{name} of {version} is no version of the document that was handed over"
            yield Finding(kind=Kind.WRONG_QUOTE, detail=detail)
    for job, seen in views(run).items():
        answer = next((view.result for view in seen if view.result is not None), None)
        if answer is None:
            continue
        for quote in answer.get("evidence") or ():
            counted.append(1)
            name, version = quote["passage"]["id"], answer["index"]
            known = passages.get((version, name))
            texts = written.get(name, set()) if known is None else {known}
            if not any(_stands(quote, text) for text in texts):
                detail = (
                    f"{job}: {quote['quote']!r} is not at {quote['start']} of {name} in {version}"
                )
                yield Finding(kind=Kind.WRONG_QUOTE, detail=detail)


def _stands(quote: Mapping[str, Any], text: str) -> bool:
    return bool(quote["quote"]) and text[quote["start"] : quote["end"]] == quote["quote"]


def _written(run: Run) -> Mapping[str, set[str]]:
    """Texts of every version of a document."""
    found: dict[str, set[str]] = defaultdict(set)
    for record in run.of("document"):
        found[record["id"]].add(record["text"])
    return found


def _passages(run: Run) -> dict[tuple[str, str], str]:
    """Passages that were read, by version and id."""
    asked = {r["n"]: r["passage_of"] for r in run.of("request") if r.get("passage_of")}
    return {
        (asked[reply["to"]], reply["body"]["passage"]["id"]): reply["body"]["text"]
        for reply in run.of("reply")
        if reply["to"] in asked and reply.get("status") == 200
    }
