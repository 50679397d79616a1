"""Data set for fine-tuning: passages with their summaries (TCRA-LLM, figure 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from posology.errors import BadFile, InputError

Split: TypeAlias = Literal["train", "validation", "test"]
#: of training and validation: of 500 passages 400 and 50, with 50 for testing (section 4.2.1)
SHARES = (0.8, 0.1)


class Pair(BaseModel):
    """A passage and its summary: a row of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: of the passage
    id: str
    split: Split
    text: str = Field(min_length=1)
    summary: str = Field(min_length=1)
    #: target share of the passage's words
    share: float = Field(gt=0, lt=1)
    #: number of replies, at least 1
    rounds: int = Field(ge=1)
    #: ``provider:name`` of the model that wrote it
    model: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """A data set of one compression ratio."""

    share: float
    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    test: tuple[Pair, ...]
    #: SHA-256 of the file, the first 16 hex digits
    digest: str


def split_of(place: int, count: int) -> Split:
    """Return the split of the pair at a place of ``count`` shuffled pairs."""
    train, validation = (round(count * share) for share in SHARES)
    return "train" if place < train else "validation" if place < train + validation else "test"


def write_pairs(pairs: Sequence[Pair], path: Path) -> None:
    """Write a data set atomically, one pair per row.

    Raises:
        BadFile: the file cannot be written.
    """
    part = path.with_name(path.name + ".part")
    try:
        part.write_text("".join(f"{one.model_dump_json()}\n" for one in pairs), encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None


def read_pairs(path: Path) -> Pairs:
    """Read a data set.

    Raises:
        BadFile: the file cannot be read, or a row is not a pair.
        InputError: rows have several ratios, or there are none for training or validation.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
    by_split: dict[Split, list[Pair]] = {"train": [], "validation": [], "test": []}
    shares = set()
    for number, line in enumerate(content.splitlines(), 1):
        try:
            pair = Pair.model_validate_json(line)
        except ValidationError:
            reason = "not a row of a data set of `posology compressor dataset`"
            raise BadFile(reason, path=str(path), line=number) from None
        by_split[pair.split].append(pair)
        shares.add(pair.share)
    if len(shares) != 1:
        raise InputError(
            f"{path} must have rows of exactly one compression ratio (got {len(shares)})."
        )
    if not by_split["train"] or not by_split["validation"]:
        raise InputError(f"{path} must have rows of both splits train and validation.")
    return Pairs(
        share=shares.pop(),
        train=tuple(by_split["train"]),
        validation=tuple(by_split["validation"]),
        test=tuple(by_split["test"]),
        digest=hashlib.sha256(content).hexdigest()[:16],
    )
