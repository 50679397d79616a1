"""Simulated models in evaluations: they know the suites' gold, and overlook or misread it as published models did.

A figure of theirs says what would follow if a model behaved as the publications describe
(``docs/concepts/simulated-models.md``). They read nothing, so only a question with a known answer can be asked of them. In
requests and in the tenant's ledger their calls are those of the offline reader, whose place they take: free, with the tokens
of the real prompts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from orchestrator.evaluation.simulation import MISREAD, SimulatedModel, profiles
from orchestrator.evaluation.suites.base import Case, Gold
from orchestrator.training.qtable.rewards import containment
from posology.errors import InputError, UnknownModel
from posology.llm.models.names import SIMULATED
from posology.llm.offline.reader import NAME
from posology.seams import TokenCounter
from posology.text.sentences import split
from posology.types import Call, Completion, Passage, Query, Sentence

T = TypeVar("T")


def is_simulated(model: str) -> bool:
    """Return whether a name is one of a simulated model, ``simulated:PROFILE``."""
    return model.partition(":")[0] == SIMULATED


def asked_as(model: str) -> str:
    """Return the model that requests name: the offline reader for a simulated model, else the same.

    Raises:
        UnknownModel: there is no such profile.
    """
    if not is_simulated(model):
        return model
    if model.partition(":")[2] not in profiles():
        known = ", ".join(f"{SIMULATED}:{name}" for name in profiles())
        raise UnknownModel(
            f"unknown model {model!r}: the simulated models are {known}", model=model
        )
    return NAME


def misread(text: str | None) -> bool:
    """Return whether an answer is one that a simulated model misread, though it holds the words of the right one."""
    return (text or "").startswith(MISREAD)


def passage_ids(passage: Passage) -> frozenset[str]:
    """Return the ids that gold may name a passage by: its own, its article's and PubMed's."""
    pmid = None if passage.pmid is None else f"pmid:{passage.pmid}"
    return frozenset(one for one in (passage.id, passage.parent, pmid) if one)


class Simulated:
    """:class:`~posology.seams.Send` of one profile, for the questions of some suites.

    Args:
        model: ``simulated:PROFILE``.
        cases: the questions that will be asked.
        count: of tokens.

    Raises:
        InputError: a question has neither gold passages nor accepted answers, or two with the same words have different gold.
        UnknownModel: there is no such profile.
    """

    def __init__(self, model: str, cases: Iterable[Case], count: TokenCounter) -> None:
        asked_as(model)
        self._profile = profiles()[model.partition(":")[2]]
        self._count = count
        self._gold = _gold_of(model, cases)

    async def __call__(self, call: Call, *, attempt_id: str | None = None) -> Completion:
        """Reply to one call from the gold among its passages."""
        gold = self._gold[_words(call.query.text)]
        spans = {
            one.passage.id: found for one in call.excerpts if (found := _spans(gold, one.passage))
        }
        simulated = SimulatedModel(
            self._profile,
            _always(spans),
            self._count,
            answers=None if gold.verdict is None else _always(dict.fromkeys(spans, gold.verdict)),
        )
        return await simulated(call, attempt_id=attempt_id)

    async def aclose(self) -> None:
        """Hold nothing, so close nothing."""


def _gold_of(model: str, cases: Iterable[Case]) -> Mapping[str, Gold]:
    by_question: dict[str, Gold] = {}
    for case in cases:
        gold, question = case.gold, _words(str(case.fields["question"]))
        if gold.answerable and not gold.passages and not gold.answers:
            raise InputError(
                f"{model} simulates a model from gold passages or accepted answers, and question {case.id} has neither: add "
                "them to its gold, or choose another model"
            )
        if by_question.setdefault(question, gold) != gold:
            raise InputError(
                f"{model} cannot be asked question {case.id}: another one has the same words and a different gold"
            )
    return by_question


def _spans(gold: Gold, passage: Passage) -> tuple[Sentence, ...]:
    """Return the sentences that answer; a gold passage without an accepted answer's words answers as a whole."""
    if not gold.answerable or (gold.passages and passage_ids(passage).isdisjoint(gold.passages)):
        return ()
    found = tuple(
        one
        for one in split(passage.text)
        if any(containment(passage.text[one.start : one.end], answer) for answer in gold.answers)
    )
    whole = (Sentence(start=0, end=len(passage.text)),)
    return found or (whole if gold.passages else ())


def _always(known: T) -> Callable[[Query], T]:
    return lambda _: known


def _words(question: str) -> str:
    return " ".join(unicodedata.normalize("NFC", question).split())
