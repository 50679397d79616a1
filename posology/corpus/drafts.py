"""Drafts: items without places, which readers of articles yield.

A reader yields drafts in the order of the file, and :func:`placed` numbers all of them. So reading a file again from a
place yields exactly the later items.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from posology.corpus.items import Deletion, Item, Notice, NoticeKind, Parts, Record, Remark, part_id
from posology.corpus.pieces import Piece
from posology.errors import BadFile, BadRecord
from posology.types import Passage

_LONGEST = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Wrong:
    """An article, or a part of a file, that cannot be read."""

    reason: str
    #: its id, if readable
    record: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Remarked:
    """A remark on an article that is read."""

    reason: str
    #: see :attr:`posology.corpus.items.Remark.record`
    record: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Broken:
    """The file cannot be read any further."""

    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Whole:
    """End of an article's parts."""

    id: str
    count: int
    #: see :attr:`posology.corpus.items.Parts.whole`
    whole: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Gone:
    """A withdrawn article."""

    id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Warned:
    """A notice that the next draft's article gives of another."""

    target: str
    kind: NoticeKind
    #: id of the article's first part, which is the source of its notices
    by: str


Draft: TypeAlias = Passage | Warned | Whole | Gone | Remarked | Wrong | Broken


def placed(drafts: Iterable[Draft], *, path: Path, after: int) -> Iterator[Item]:
    """Yield items with places 1, 2, 3, …, after the place ``after``; a notice has the place of the next item."""
    row = place = 0
    for draft in drafts:
        if isinstance(draft, Broken):
            yield BadFile(draft.reason, path=str(path), line=place or None)
            return
        if place + 1 > after:
            yield _item(draft, path=path, line=place + 1, row=row)
        row += isinstance(draft, Passage | Wrong)
        place += not isinstance(draft, Warned)


def counted(drafts: Iterable[Draft]) -> int:
    """Return the number of passages, unreadable ones included."""
    return sum(isinstance(draft, Passage | Wrong) for draft in drafts)


def parts(pieces: Iterable[Piece], *, of: Passage) -> Iterator[Draft]:
    """Yield the parts of an article, then their end; nothing for an article without parts.

    Args:
        pieces: texts of the passages, in order.
        of: the article. Its id becomes the parent; the parts take its other fields, except text, section and pages.
    """
    count = 0
    for piece in pieces:
        count += 1
        yield replace(
            of,
            id=part_id(of.id, count),
            text=piece.text,
            section=piece.section,
            pages=piece.pages,
            parent=of.id,
        )
    if count:
        yield Whole(id=of.id, count=count)


def file_id(path: Path) -> str:
    """Return the id of an article that has none of its own: ``file:FOLDER/NAME``.

    By the name, not by the content, so that a file that was edited replaces what it was; without the folders above,
    so that it is the same on another machine. Two files of one name in folders of one name count as one.
    """
    full = path.resolve()
    name = _readable(f"{full.parent.name}/{full.name}" if full.parent.name else full.name)
    if len(name) > _LONGEST:
        name = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
    return f"file:{name}"


def file_title(path: Path, *suffixes: str) -> str:
    """Return a file's name without the first of ``suffixes`` that it ends with, its underscores as spaces."""
    name = path.name
    for suffix in suffixes:
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
            break
    return " ".join(_readable(name).replace("_", " ").split())


def _readable(name: str) -> str:
    shown = os.fsencode(name).decode(errors="replace")
    return "".join(char if char.isprintable() else "\ufffd" for char in shown).strip()


def _item(
    draft: Passage | Warned | Whole | Gone | Remarked | Wrong, *, path: Path, line: int, row: int
) -> Record | Notice | Parts | Deletion | Remark | BadRecord:
    match draft:
        case Passage():
            return Record(passage=draft, path=path, line=line, row=row)
        case Warned(target=target, kind=kind, by=by):
            return Notice(target=target, kind=kind, by=by, path=path, line=line)
        case Whole(id=article, count=count, whole=whole):
            return Parts(id=article, count=count, path=path, line=line, whole=whole)
        case Gone(id=article):
            return Deletion(id=article, path=path, line=line)
        case Remarked(reason=reason, record=record):
            return Remark(reason=reason, path=path, line=line, record=record)
        case Wrong(reason=reason, record=record):
            return BadRecord(reason, path=str(path), line=line, record=record)
