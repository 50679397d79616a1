"""All checks, and the figures that they count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from evals.fire.checker.caps import Steps, caps
from evals.fire.checker.evidence import Finding, Kind, Run
from evals.fire.checker.isolation import isolation
from evals.fire.checker.money import Sums, money
from evals.fire.checker.outcomes import outcomes
from evals.fire.checker.quotes import quotes
from evals.fire.checker.views import OVER, views


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Findings, and figures of what was checked."""

    findings: tuple[Finding, ...]
    #: accepted jobs by their last state
    jobs: Counter[str]
    requests: int
    replies: int
    money: Sums
    caps: Steps
    quotes: int

    def count(self, *kinds: Kind) -> int:
        """Return the number of findings of some kinds."""
        return sum(finding.kind in kinds for finding in self.findings)


def check(run: Run) -> Verdict:
    """Check a run."""
    sums, steps, quoted = Sums(), Steps(), list[int]()
    found = [
        *outcomes(run),
        *money(run, sums),
        *caps(run, steps),
        *quotes(run, quoted),
        *isolation(run),
    ]
    ends = Counter(
        next((view.state for view in reversed(seen) if view.state in OVER), None) or "unknown"
        for seen in views(run).values()
    )
    return Verdict(
        findings=tuple(found),
        jobs=ends,
        requests=sum(1 for _ in run.of("request")),
        replies=sum(1 for _ in run.of("reply")),
        money=sums,
        caps=steps,
        quotes=len(quoted),
    )
