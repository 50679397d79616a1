"""Reader of study records of ClinicalTrials.gov in JSON: one study, a page of its API, or a download of several."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from posology.corpus.clinicaltrials.protocol import (
    article,
    number_of,
    protocol,
    retracted,
    standing,
)
from posology.corpus.clinicaltrials.results import UNREAD, results
from posology.corpus.decoding import FAULTS, message, opened
from posology.corpus.drafts import Broken, Draft, Warned, Wrong, counted, parts, placed
from posology.corpus.gaps import Gaps, told
from posology.corpus.items import Item, NoticeKind, part_id
from posology.corpus.pieces import BREAK, Piece, pack
from posology.types.flags import STOPPED

SUFFIXES = (".json", ".json.gz")
#: bytes of a file, unpacked: it is held in memory
MAX_BYTES = 128 * 1024 * 1024

_BEGINS = re.compile(r'\s*[\[{].*"protocolSection"\s*:', re.DOTALL)


def begins(text: str) -> bool:
    """Return whether a text is that of study records, by its beginning."""
    return _BEGINS.match(text) is not None


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the passages of a file of study records; see :mod:`posology.corpus.items`.

    The file is held in memory, of at most :data:`MAX_BYTES`. Each part of a study that was stopped says so first, and why.
    """
    return placed(_drafts(path), path=path, after=after)


def count(path: Path) -> int:
    """Return the number of passages, unreadable ones included, up to where the file can be read."""
    return counted(_drafts(path))


def _drafts(path: Path) -> Iterator[Draft]:
    try:
        with opened(path) as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            yield Broken(reason=f"more than {MAX_BYTES:,} bytes: download fewer studies at once")
            return
        studies = studies_of(json.loads(content))
    except FAULTS as error:
        yield Broken(reason=message(error))
        return
    except (ValueError, RecursionError):
        yield Broken(reason="not JSON, or cut short")
        return
    if not studies:
        yield Broken(reason="holds no study record of ClinicalTrials.gov")
    for study in studies:
        yield from _study(study)


def studies_of(content: object) -> list[Any]:
    """Return the study records of a JSON value: of one study, of a page or of a list."""
    found = content.get("studies", [content]) if isinstance(content, dict) else content
    return found if isinstance(found, list) else []


def _study(study: object) -> Iterator[Draft]:
    if not isinstance(study, dict) or (number := number_of(study)) is None:
        yield Wrong(reason="no study record of ClinicalTrials.gov, or without its number")
        return
    whole = article(study, number)
    for pmid in retracted(study):
        yield Warned(target=f"pmid:{pmid}", kind=NoticeKind.RETRACTION, by=part_id(whole.id, 1))
    pieces = pack(chain(protocol(study), results(study)))
    if not STOPPED.keys().isdisjoint(whole.publication_types):
        pieces = _warned(pieces, standing(study))
    yield from told(parts(pieces, of=whole), Gaps(UNREAD), record=whole.id)


def _warned(pieces: Iterator[Piece], said: str) -> Iterator[Piece]:
    for piece in pieces:
        known = piece.text.startswith(said)
        yield piece if known else replace(piece, text=f"{said}{BREAK}{piece.text}")
