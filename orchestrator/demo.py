"""``posology demo``: ingest the sample corpus, ask its questions, and say how many came out right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from anyio import to_thread
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from orchestrator.ingesting import run_ingest
from orchestrator.output import ask_output
from orchestrator.pipeline import Request
from orchestrator.service import open_service
from orchestrator.settings import Settings
from orchestrator.terminal import money, show_answer
from posology.corpus.sample import SampleQuestion, notes_file, questions
from posology.llm.accounting import Account
from posology.published.answers import AskOutput, Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A sample question and what became of it."""

    question: SampleQuestion
    out: AskOutput

    @property
    def cited_gold(self) -> bool:
        """Whether an answer cites at least one gold passage."""
        return any(item.passage.id in self.question.gold for item in self.out.evidence)

    @property
    def quoted_gold(self) -> bool:
        """Whether a quote overlaps the words that carry the gold answer."""
        return any(
            item.passage.id == gold.passage_id
            and (gold.quote in item.context or item.quote in gold.quote)
            for item in self.out.evidence
            for gold in self.question.evidence
        )

    @property
    def refused(self) -> bool:
        """Whether no answer was given."""
        return self.out.status is Status.REFUSED


async def run_demo(
    console: Console, settings: Settings, *, place: str, model: str, k: int, everything: bool
) -> list[Asked]:
    """Ingest the sample notes, then ask: a dozen questions, each shown, or all and a table.

    Raises:
        PosologyError: the index cannot be built or a call failed.
    """
    with notes_file() as notes:
        report = await to_thread.run_sync(
            lambda: run_ingest([notes], settings, place=place, console=console)
        )
    console.print(f"sample corpus: {report.good} notes in {place}\n")
    chosen = [q for q in questions() if everything or q.demo]
    asked: list[Asked] = []
    async with open_service(settings, place) as service:
        for question in chosen:
            request = Request(
                query=question.query, model=model, k=k, max_tokens=settings.max_tokens
            )
            done = Asked(question=question, out=ask_output(await service.ask(request, Account())))
            asked.append(done)
            if everything:
                console.print(_line(done))
            else:
                show_answer(console, done.out, title=question.id)
                console.print(Text(f"  expected: {_gold(question)}\n", style="dim"))
    console.print(Rule(style="dim"))
    console.print(summary(asked))
    return asked


def _line(asked: Asked) -> Text:
    question = asked.question
    right = asked.refused if question.unanswerable else asked.cited_gold
    mark = ("✓ ", "green") if right else ("✗ ", "red")
    status = f"{asked.out.status:<12}"
    return Text.assemble(mark, (f"{question.id} {status} ", "dim"), question.query.text)


def _gold(question: SampleQuestion) -> str:
    if question.unanswerable:
        return "a refusal: no note answers this"
    verdict = f"{question.choice}: " if question.choice else ""
    return f"{verdict}{question.answer}  [{', '.join(sorted(question.gold))}]"


def summary(asked: Sequence[Asked]) -> Table:
    """The table of ``posology demo --all``: shares over all questions that were asked."""
    answerable = [a for a in asked if not a.question.unanswerable]
    unanswerable = [a for a in asked if a.question.unanswerable]
    table = Table(title="sample questions", title_justify="left")
    table.add_column("measure")
    table.add_column("count", justify="right")
    table.add_column("share", justify="right")
    rows = (
        ("answerable: answered with a gold passage cited", [a.cited_gold for a in answerable]),
        ("answerable: the gold words themselves quoted", [a.quoted_gold for a in answerable]),
        ("answerable: refused", [a.refused for a in answerable]),
        ("unanswerable: refused", [a.refused for a in unanswerable]),
    )
    for name, hits in rows:
        share = f"{sum(hits) / len(hits):.3f}" if hits else "–"
        table.add_row(name, f"{sum(hits)}/{len(hits)}", share)
    costs = [a.out.spending.cost_usd for a in asked]
    known = [cost for cost in costs if cost is not None]
    table.add_section()
    total_in = sum(a.out.spending.usage.total_input for a in asked)
    total_out = sum(a.out.spending.usage.total_output for a in asked)
    table.add_row("tokens in", f"{total_in:,}", "")
    table.add_row("tokens out", f"{total_out:,}", "")
    total = sum(known, Decimal(0)) if len(known) == len(costs) else None
    table.add_row("cost", money(total), "")
    return table
