"""Grades of answers: right, wrong, refused; and their row."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from orchestrator.evaluation.forms import (
    CitationsOutput,
    CitedOutput,
    EvalRow,
    Outcome,
    SupportCounts,
)
from orchestrator.evaluation.plan import Item
from orchestrator.evaluation.simulated import is_simulated, misread
from orchestrator.evaluation.suites.base import Gold
from orchestrator.question.report import spending
from orchestrator.training.qtable.rewards import containment
from posology.errors import PosologyError
from posology.llm.accounting import Account
from posology.llm.offline.replies import NOTICE
from posology.published.answers import AskOutput, Source, Status, SupportOutput
from posology.text.quoting.references import without_references


def regraded(gold: Gold, row: EvalRow) -> EvalRow:
    """Return a row with its grade by the present known answer, which may have been corrected since.

    A refusal is right where the literature does not answer the question. Else a verdict decides; without one, whether the
    answer has all words of an accepted answer (stemmed); without these, whether it cites a gold passage.
    """
    citations = None if row.status is None else _citations(gold, row)
    return row.model_copy(
        update={
            "gold": gold,
            "outcome": _outcome(gold, row, citations),
            "citations": citations,
        }
    )


def answered_row(item: Item, out: AskOutput, account: Account, *, replayed: bool) -> EvalRow:
    """Return the row of an answer or a refusal.

    Args:
        item: the question.
        out: the outcome.
        account: all attempts.
        replayed: whether replies of an interrupted run were used, so that the duration is unknown.
    """
    row = _row(item, account).model_copy(
        update={
            "status": out.status,
            "answer": out.answer,
            "verdict": out.choice,
            "refusal": out.refusal,
            "cited": tuple(
                CitedOutput(
                    passage=_ids(one.passage), start=one.start, end=one.end, quote=one.quote
                )
                for one in out.evidence
            ),
            "retrieved": tuple(_ids(one.passage) for one in out.retrieved),
            "support": None if out.support is None else _support(out.support),
            "decision": out.decision,
            "seconds": None if replayed else out.seconds,
            "index": out.index,
        }
    )
    return regraded(item.case.gold, row)


def failed_row(item: Item, error: PosologyError, account: Account) -> EvalRow:
    """Return the row of a question without an answer."""
    said = f"{type(error).__name__}: {error.message}"
    return _row(item, account).model_copy(update={"error": said})


def _row(item: Item, account: Account) -> EvalRow:
    spent = spending(account)
    return EvalRow(
        key=item.key,
        suite=item.suite,
        id=item.case.id,
        question=item.request.query.text,
        form=item.request.query.form,
        policy=item.way.policy,
        model=item.way.model,
        outcome=Outcome.FAILED,
        gold=item.case.gold,
        status=None,
        answer=None,
        verdict=None,
        refusal=None,
        cited=(),
        retrieved=(),
        citations=None,
        support=None,
        decision=None,
        calls=spent.calls,
        input_tokens=spent.usage.total_input if spent.usage_complete else None,
        output_tokens=spent.usage.total_output if spent.usage_complete else None,
        cost_usd=spent.cost_usd,
        charged_usd=spent.charged_usd,
        seconds=None,
        index=None,
        error=None,
    )


def _outcome(gold: Gold, row: EvalRow, citations: CitationsOutput | None) -> Outcome:
    if row.status is None:
        return Outcome.FAILED
    refused = row.status is Status.REFUSED
    if not gold.answerable:
        return Outcome.RIGHT if refused else Outcome.WRONG
    if refused:
        return Outcome.REFUSED
    if gold.verdict is not None and row.verdict is None:
        return Outcome.UNDECIDED
    if is_simulated(row.model) and misread(row.answer):
        return Outcome.WRONG
    if gold.verdict is not None:
        right = row.verdict == gold.verdict
    elif gold.answers:
        said = _words_of(row)
        right = any(containment(said, one) for one in gold.answers)
    else:
        right = citations is not None and citations.right > 0
    return Outcome.RIGHT if right else Outcome.WRONG


def _words_of(row: EvalRow) -> str:
    """Return what an answer says, without the ids of its passages, whose numbers are no words of it."""
    ids = {*chain(*(one.passage for one in row.cited)), *chain(*row.retrieved)}
    return without_references((row.answer or "").replace(NOTICE, ""), ids)


def _citations(gold: Gold, row: EvalRow) -> CitationsOutput | None:
    """Return the citations beside the gold passages; ``None``: these are unknown."""
    wanted = frozenset(gold.passages)
    if not wanted:
        return None
    cited = {one.passage for one in row.cited}
    return CitationsOutput(
        cited=len(cited),
        right=sum(not wanted.isdisjoint(ids) for ids in cited),
        gold=len(wanted),
        found=len(wanted.intersection(chain(*cited))),
        retrieved=len(wanted.intersection(chain(*row.retrieved))),
    )


def _ids(passage: Source) -> tuple[str, ...]:
    pmid = None if passage.pmid is None else f"pmid:{passage.pmid}"
    return tuple(dict.fromkeys(one for one in (passage.id, passage.parent, pmid) if one))


def _support(found: SupportOutput) -> SupportCounts:
    counts = Counter(str(one.backing) for one in found.sentences)
    return SupportCounts(**counts, removed=found.removed)
