"""What a job keeps of a question while workers read its partitions: what its answer is put together with later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from orchestrator.question.report import compression, ranked
from posology.published.answers import CompressionOutput, Ranked
from posology.types import Rung

if TYPE_CHECKING:
    from orchestrator.question.pipeline import Prepared, Report


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """As it was when the partitions were handed over."""

    #: that were tried in vain before
    rungs: tuple[Rung, ...]
    #: the passages with their places in the rankings
    retrieved: tuple[Ranked, ...]
    #: name and version of the index
    index: str
    #: seconds for retrieval
    retrieval_seconds: float
    #: what compressing took at those rungs; ``None``: nothing was compressed
    compression: CompressionOutput | None = None


_draft = TypeAdapter(Draft)


def draft(prepared: Prepared, vain: Report | None) -> Mapping[str, object]:
    """A draft as JSON holds it.

    Args:
        prepared: what is handed over.
        vain: what came of a ladder before; ``None``: there was none.
    """
    found = Draft(
        rungs=vain.outcome.rungs if vain else (),
        retrieved=ranked(prepared.retrieval),
        index=prepared.retrieval.index_version,
        retrieval_seconds=prepared.retrieval_seconds,
        compression=compression(vain.outcome.compression, vain.spared) if vain else None,
    )
    made: Mapping[str, object] = _draft.dump_python(found, mode="json")
    return made


def read_draft(text: str) -> Draft:
    """The draft of a job's record, also of one from before there was any compression in it.

    Raises:
        ValueError: it is none.
    """
    return _draft.validate_json(text)
