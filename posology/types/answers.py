"""What is decided and answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from posology.types.literature import Query, Retrieval


@dataclass(frozen=True, kw_only=True, slots=True)
class Citation:
    """A verified quote: ``passage.text[start:end] == quote``, always."""

    passage_id: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer with evidence that was checked against the sources."""

    text: str
    #: one of :attr:`Query.choices`; ``None`` for free questions and where the model gave none
    choice: str | None
    citations: tuple[Citation, ...]
    #: quotes that the model gave and that did not pass the check
    dropped_quotes: int
    #: the strategy that answered
    strategy: str
    #: remarks that a reader must see, e.g. that the text is truncated
    notes: tuple[str, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether at least one quote stands."""
        return bool(self.citations)


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A truthful 'the passages do not answer this'."""

    #: in the model's words or ours
    reason: str
    strategy: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Task:
    """What a strategy is asked to do."""

    query: Query
    retrieval: Retrieval
    #: ``provider:name``
    model: str
    #: bound on output tokens of one call
    max_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Situation:
    """All that a policy may look at."""

    query: Query
    retrieval: Retrieval
    #: dollars that may still be spent; ``None``: no limit applies
    remaining: Decimal | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """Which strategy runs, and why: enough to decide the same way again."""

    strategy: str
    #: the policy that decided
    policy: str
    #: a sentence for a reader
    reason: str
    #: what the policy looked at
    features: Mapping[str, Any] = field(default_factory=dict)
