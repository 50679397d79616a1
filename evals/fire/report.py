"""Figures of a run as Markdown."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

from evals.fire.checker import Kind, Run, Verdict
from evals.fire.memory import Slope, slopes


def report(run: Run, verdict: Verdict) -> str:
    """Return what was done, what was seen and what was found."""
    pieces = list(run.of("piece"))
    hours = sum(piece["seconds"] for piece in pieces) / 3600
    struck = Counter(record["what"] for record in run.of("struck"))
    left = Counter(record["what"] for record in run.of("left out"))
    skies = Counter(r["weather"] for r in run.of("blow") if r["deed"] == "weather")
    kills = sum(count for what, count in struck.items() if what.startswith("kill "))
    restarts = struck["kill redis"] + struck["restart redis"]
    played = Counter(request["played"] for request in run.books)
    money, caps = verdict.money, verdict.caps
    lost = verdict.count(Kind.LOST_JOB)
    doubled = verdict.count(
        Kind.SECOND_OUTCOME, Kind.EARLY_OUTCOME, Kind.CHANGED_ANSWER, Kind.DOUBLED_JOB,
        Kind.PAID_AGAIN, Kind.DOUBLE_CHARGE,
    )  # fmt: skip
    rows = [
        ("seed, pieces, hours of work", f"{pieces[0]['seed'] if pieces else '?'}, {len(pieces)}, {hours:.2f}"),
        ("requests, replies", f"{verdict.requests:,}, {verdict.replies:,}"),
        ("jobs", f"{verdict.jobs.total():,}: {_counted(verdict.jobs)}"),
        ("kills, of these Redis; restarts of Redis", f"{kills}, {struck['kill redis']}; {restarts}"),
        ("faults", _counted(struck)),
        ("left out, since this machine does not permit them", _counted(left) or "none"),
        ("provider's weather", _counted(skies) or "fair"),
        ("provider's replies", _counted(played)),
        ("attempts in the ledger", f"{money.attempts:,}"),
        ("billed by the provider", f"{money.billed:,}, {_dollars(money.due)}"),
        ("charged", _dollars(money.charged)),
        ("billed-unknown",
         f"{money.billed_unknown}, billed {_dollars(money.billed_unknown_due)}, charged {_dollars(money.billed_unknown_charged)}"),
        ("unknown and not billed", f"{money.unbilled_unknown}, charged {_dollars(money.unbilled_unknown_charged)}"),
        ("billed above the bound (a dishonest provider)", f"{money.over}, {_dollars(money.excess)}"),
        ("charged by the other list while prices changed",
         f"{money.repriced}, {_dollars(money.repriced_charged)} beyond what was billed"),
        ("changes of counters replayed, snapshots", f"{caps.steps:,}, {caps.snapshots}"),
        ("most of a cap that was taken", f"{caps.peak:.2%}"),
        ("commands of the runbook", _counted(Counter(record["page"] for record in run.of("drill"))) or "none"),
        ("quotes compared", f"{verdict.quotes:,}"),
        ("**overshoot**", _dollars(caps.overshoot)),
        ("**lost**", str(lost)),
        ("**doubled**", str(doubled)),
        ("**wrong quotes**", str(verdict.count(Kind.WRONG_QUOTE))),
        ("**ends of the stack**", str(verdict.count(Kind.STACK_ENDED))),
        ("**internal errors**", str(verdict.count(Kind.INTERNAL_ERROR))),
        ("**commands that ended otherwise than the runbook says**", str(verdict.count(Kind.RUNBOOK))),
        ("**leaks**", str(verdict.count(Kind.LEAK))),
        ("**findings**", str(len(verdict.findings))),
    ]  # fmt: skip
    lines = ["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)]
    if not any(True for _ in run.of("drained")):
        lines += ["", "Not every call had ended when the run did."]
    if found := slopes(run.records):
        lines += ["", *_memory(found)]
    if verdict.findings:
        lines += ["", *(f"- {finding.kind}: {finding.detail}" for finding in verdict.findings)]
    return "\n".join(lines)


def _memory(found: list[Slope]) -> list[str]:
    rows = []
    for one in found:
        big = one.what.rpartition(" ")[2] in ("rss", "bytes", "disk")
        unit, scale = (" MiB", 2**20) if big else ("", 1)
        rows.append(
            f"| {one.what} | {one.samples} in {one.span / 60:.0f} min | {one.first / scale:.1f}{unit} | "
            f"{one.last / scale:.1f}{unit} | {one.slope / scale:+.2f} ± {one.error / scale:.2f}{unit} |"
        )
    return [
        "| longest-lived process | samples | first | last | per hour, ± standard error |",
        "| --- | --- | --- | --- | --- |",
        *rows,
    ]


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def _dollars(nano: int) -> str:
    return f"${Decimal(nano) / 10**9:.6f}"
