"""Compares the two forms of quotes: sentences by number, and copied words.

Usage: ``python -m evals.quotes [--data PATH] [--questions N] [--model NAME --max-cost USD]``.

Each question is asked by direct RAG and by BriefContext over the same passages, in both forms: tokens, calls after an
unusable reply, quotes, dropped quotes and unsupported answers. Without ``--model`` the offline reader answers, which copies
and counts without a slip; with a model and its provider's key (as for ``posology ask``), the calls are paid for, up to
``--max-cost`` in all.

With ``--data``, it also measures the check of named sentences: on HealthVer's claims, of which people said what evidence
supports or refutes them, in words of their own; on claims that were written right or wrong beside sentences of an abstract,
which are named alone, and together with three others of the abstract (where one of the right ones must stay); and on sentences
of abstracts, each named by its own number, by the next one, and by the same number of another abstract.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import anyio

from evals.cost_questions import Asked, load
from orchestrator.budget import open_budget
from orchestrator.environment import prepare_libraries
from orchestrator.models import Models
from orchestrator.service import open_connections
from orchestrator.settings import Settings, load_settings
from posology.budget.ledger.journal import LedgerJournal
from posology.errors import BudgetError, ProviderError
from posology.llm.accounting import Account
from posology.seams import Complete, Strategy
from posology.text.sentences import split
from posology.types import QUOTE_FORMS, Answer, Excerpt, Outcome, Passage, QuoteForm, Task
from strategies.briefcontext.strategy import BriefContext
from strategies.citing import Claim, cite
from strategies.direct import Direct
from training.gold import rows

_K = 8
_OFFLINE = "offline:extractive"
_CLAIMS, _ABSTRACTS = "healthver_dev.jsonl.gz", "pubmedqa_train.jsonl.gz"
_WRITTEN, _POOL = "claims.jsonl.gz", "pool.jsonl.gz"


#: sentences that are named beside the right ones
_OTHERS = 3


@dataclass(kw_only=True, slots=True)
class Row:
    """What one strategy took in one form."""

    answered: int = 0
    unsupported: int = 0
    refused: int = 0
    failed: int = 0
    quotes: int = 0
    dropped: int = 0
    calls: int = 0
    repairs: int = 0
    input: int = 0
    output: int = 0
    cost: Decimal = Decimal(0)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--model", default=_OFFLINE)
    parser.add_argument("--max-cost", type=Decimal, default=Decimal("0.50"))
    args = parser.parse_args()
    prepare_libraries()
    asked = load(args.data, args.questions, _K)
    with tempfile.TemporaryDirectory() as home:
        settings = replaced(load_settings(), home) if args.model == _OFFLINE else load_settings()
        anyio.run(_compare, settings, asked, args.model, args.max_cost)
    if args.data is not None:
        _check(args.data)


def replaced(settings: Settings, home: str) -> Settings:
    """Return settings with another home, so that a free run leaves nothing behind."""
    return settings.model_copy(update={"home": home, "redis_url": None})


async def _compare(settings: Settings, asked: Sequence[Asked], model: str, cap: Decimal) -> None:
    models = Models(settings.embedder, settings.embedding)
    print("| strategy | quotes | answered | unsupported | refused | failed | verified quotes | dropped | calls | "
          "unusable replies | input | output | dollars |")  # fmt: skip
    print("| --- " * 13 + "|")
    spent = Decimal(0)
    async with (
        open_budget(settings, None) as budget,
        open_connections(settings, models, budget.meter) as connections,
    ):
        strategies: tuple[Strategy, ...] = (Direct(), BriefContext())
        for strategy in strategies:
            for form in QUOTE_FORMS:
                row = Row()
                for one in asked:
                    account = Account()
                    journal = LedgerJournal(
                        budget.ledger, account, cap=max(Decimal(0), cap - spent)
                    )
                    complete = connections.complete(model, journal)
                    retrieval = one.retrieval
                    task = Task(
                        query=retrieval.query,
                        retrieval=retrieval,
                        model=model,
                        max_tokens=None,
                        quotes=form,
                    )
                    await _ask(strategy, task, complete, row)
                    _count(account, row)
                    spent += account.charged
                print(_line(type(strategy).__name__, form, row, len(asked)))


async def _ask(strategy: Strategy, task: Task, complete: Complete, row: Row) -> None:
    try:
        outcome = await strategy(task, complete)
    except (BudgetError, ProviderError):
        row.failed += 1
        return
    if not isinstance(outcome, Answer):
        row.refused += 1
        return
    row.answered += outcome.supported
    row.unsupported += not outcome.supported
    row.quotes += len(outcome.citations)
    row.dropped += outcome.dropped_quotes


def _count(account: Account, row: Row) -> None:
    for attempt in account.attempts:
        row.calls += 1
        row.repairs += attempt.outcome is Outcome.UNUSABLE
        row.cost += attempt.charged
        if attempt.usage is not None:
            row.input += attempt.usage.total_input
            row.output += attempt.usage.total_output


def _line(strategy: str, form: QuoteForm, row: Row, questions: int) -> str:
    return (
        f"| {strategy} | {form} | {row.answered} | {row.unsupported} | {row.refused} | {row.failed} | {row.quotes} | "
        f"{row.dropped} | {row.calls} | {row.repairs} | {row.input / questions:,.0f} | "
        f"{row.output / questions:,.0f} | {row.cost:.4f} |"
    )


def _check(data: Path) -> None:
    kept: dict[str, list[bool]] = {}
    for row in rows(data / _CLAIMS):
        for evidence in row["evidence"]:
            excerpt = _excerpt(evidence["text"])
            names = [f"1.{n + 1}" for n in range(len(excerpt.sentences))]
            found = kept.setdefault(f"HealthVer: {evidence['label'].lower()} the claim", [])
            found.append(_kept(row["claim"], names, [excerpt]))
    for kind, stays in _written(data):
        kept.setdefault(kind, []).append(stays)
    abstracts = [_excerpt(" ".join(row["contexts"])) for row in rows(data / _ABSTRACTS)]
    for one, other in pairwise(abstracts):
        text = one.passage.text
        for n, sentence in enumerate(one.sentences[1:-1], 1):
            for kind, name in (
                ("the sentence itself", f"1.{n + 1}"),
                ("the one after it", f"1.{n + 2}"),
                ("the same number of another abstract", f"2.{n + 1}"),
            ):
                if name.startswith("1") or n < len(other.sentences):
                    found = kept.setdefault(f"PubMedQA: {kind}", [])
                    found.append(_kept(sentence.of(text), [name], [one, other]))
    print("\n| sentences that are named | claims | kept | dropped |")
    print("| --- | --- | --- | --- |")
    for kind, every in kept.items():
        share = sum(every) / len(every)
        print(f"| {kind} | {len(every):,} | {share:.1%} | {1 - share:.1%} |")


def _written(data: Path) -> Iterator[tuple[str, bool]]:
    """Yield for each written claim whether one of its sentences stays, named alone and among others."""
    written = list(rows(data / _WRITTEN))
    ids = {one["id"] for one in written}
    pool = {one["id"]: one for one in rows(data / _POOL) if one["id"] in ids}
    for row in written:
        source = pool[row["id"]]
        passage = Passage(id=row["id"], text=source["text"], title=source.get("title") or "")
        excerpt = Excerpt(passage=passage, sentences=split(passage.text))
        for kind in ("supports", "contradicts"):
            for one in row[kind]:
                own = [n for n in one["s"] if n <= len(excerpt.sentences)]
                others = [n + 1 for n in range(len(excerpt.sentences)) if n + 1 not in own]
                for more, said in ((0, "alone"), (_OTHERS, f"and {_OTHERS} others")):
                    names = [f"1.{n}" for n in sorted((*own, *others[:more]))]
                    found = cite(Claim(text=one["claim"], names=names), [excerpt], most=len(names))
                    right = {excerpt.sentences[n - 1].start for n in own}
                    yield (
                        f"written, {kind}: {said}",
                        any(citation.start in right for citation in found.citations),
                    )


def _excerpt(text: str) -> Excerpt:
    passage = Passage(id=f"text:{hash(text)}", text=text)
    return Excerpt(passage=passage, sentences=split(text))


def _kept(claim: str, names: Sequence[str], excerpts: Sequence[Excerpt]) -> bool:
    return bool(cite(Claim(text=claim, names=names), excerpts).citations)


if __name__ == "__main__":
    main()
