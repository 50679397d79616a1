"""Policies in the demonstration: one question under decreasing caps, and the reason for its dose."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal

from rich.console import Console
from rich.rule import Rule

from orchestrator.cli.ask.explanation import why_job
from orchestrator.cli.output.tables import print_form
from orchestrator.rendering.forms.columns import table_of
from policies.affordable import describe
from posology.published.jobs import JobOutput

#: dollars, from ample to too little; at each step one more dose becomes too expensive
CAPS = tuple(map(Decimal, ("0.1", "0.01", "0.0048", "0.0042", "0.0001")))
#: the paper's preflight, which chooses BriefContext more often than the calibrated one; no Q-table, since a
#: configured one was trained on another corpus
POLICY = "router:preflight=published,qtable=off"


async def step_down(console: Console, ask: Callable[[Decimal], Awaitable[JobOutput]]) -> None:
    """Ask one question under each of :data:`CAPS`; print the doses, and explain the last but one.

    Args:
        console: to print to.
        ask: asks the question under a cap and waits for its end.
    """
    console.print(
        Rule("Policies: the dose that the question needs and the budget allows", style="dim")
    )
    jobs = [await ask(cap) for cap in CAPS]
    rows = (
        (cap, describe(job.decision.dose) if job.decision else "undecided", job.charged_usd)
        for cap, job in zip(CAPS, jobs, strict=True)
    )
    print_form(console, table_of("cap, dose, cost", rows, texts="dose", title=jobs[0].question))
    why_job(console, jobs[-2])
