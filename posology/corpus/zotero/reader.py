"""Reader of mirrored items: JSON lines with the fields of an item, and the name of its attachment beside the file.

``{"id": …, "values": {…}, "file": …}`` is an item: its attachment's passages, or else its abstract. ``{"id": …,
"deleted": true}`` removes one. Attachments are named, never by a path: such a file reads nothing outside of its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from posology.corpus import pdf
from posology.corpus.decoding import FAULTS, message, opened
from posology.corpus.documents import html, plain, word
from posology.corpus.drafts import (
    Broken,
    Draft,
    Gone,
    Remarked,
    Warned,
    Whole,
    Wrong,
    counted,
    placed,
)
from posology.corpus.items import Item, Record, Remark, part_id
from posology.corpus.jsonl import MAX_LINE
from posology.corpus.pubmed import relations
from posology.corpus.record import MAX_ID
from posology.corpus.references import fields
from posology.errors import BadFile, BadRecord
from posology.types import Passage

SUFFIXES = (".zotero",)
#: readers of attachments, by the suffix of their names here
ATTACHMENTS: Mapping[str, Callable[[Path], Iterable[Item]]] = MappingProxyType(
    {".pdf": pdf.read, ".html": html.read, ".docx": word.read, ".txt": plain.read}
)
#: stands for an abstract while the other fields are read
_NO_TEXT = "text"


class Row(BaseModel):
    """One line of a file."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    #: ``zotero:…``, see :func:`posology.corpus.zotero.documents.document_id`
    id: Annotated[str, Field(pattern=r"^zotero:[\w/]+$", max_length=MAX_ID)]
    deleted: bool = False
    #: texts by the names of :data:`posology.corpus.references.fields.FIELDS`
    values: dict[str, tuple[str, ...]] = {}
    #: name of the attachment beside the file; ``None``: the abstract is read
    file: Annotated[str, Field(pattern=r"^\w+\.(?:pdf|html|docx|txt)$")] | None = None


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the items of a file; see :mod:`posology.corpus.items`."""
    return placed(_drafts(path), path=path, after=after)


def count(path: Path) -> int:
    """Return the number of passages, unreadable ones included, up to where the file can be read."""
    return counted(_drafts(path))


def _drafts(path: Path) -> Iterator[Draft]:
    some = False
    try:
        with opened(path) as stream:
            while line := stream.readline(MAX_LINE):
                some = True
                try:
                    row = Row.model_validate_json(line)
                except ValidationError as error:
                    yield Wrong(reason=f"is no item of Zotero: {error.errors()[0]['msg']}")
                    continue
                yield from _article(row, path)
    except FAULTS as error:
        yield Broken(reason=message(error))
        return
    if not some:
        yield Broken(reason="holds no record")


def _article(row: Row, path: Path) -> Iterator[Draft]:
    if row.deleted:
        yield Gone(id=row.id)
        return
    texts = row.values.get("text", ())
    bare = not fields.bodies(texts)
    given = {**row.values, "text": (_NO_TEXT,)} if bare else row.values
    parsed = fields.parsed(given, path, source="zotero")
    if parsed.passage is None:
        yield Wrong(reason=parsed.reason, record=row.id)
        return
    whole = replace(parsed.passage, id=row.id)
    if row.file is not None:
        notices = _notices(parsed.warned, by=part_id(row.id, 1))
        read_any = False
        for draft in _parts(path.parent / row.file, whole, notices):
            read_any |= isinstance(draft, Whole)
            yield draft
        if read_any:
            return
        # parts of an earlier attachment are not the item's any more
        yield Gone(id=row.id)
    if bare:
        yield Wrong(reason="has no abstract and no text that can be read", record=row.id)
        return
    yield from _notices(parsed.warned, by=row.id)
    yield from (Remarked(reason=remark, record=row.id) for remark in parsed.remarks)
    yield whole


def _parts(file: Path, whole: Passage, notices: Iterable[Warned]) -> Iterator[Draft]:
    """Yield the passages of an attachment as the parts of its item; :class:`Whole` only if there are any."""
    parts = 0
    for item in ATTACHMENTS[file.suffix](file):
        match item:
            case Record(passage=found):
                if not parts:
                    yield from notices
                parts += 1
                yield replace(
                    whole,
                    id=part_id(whole.id, parts),
                    parent=whole.id,
                    text=found.text,
                    title=whole.title or found.title,
                    section=found.section,
                    pages=found.pages,
                    unread_pages=found.unread_pages,
                    retracted=whole.retracted or found.retracted,
                )
            case Remark() | BadRecord() | BadFile():
                # the item is read, if only its abstract
                yield Remarked(reason=f"its attachment {file.name}: {item.reason}", record=whole.id)
    if parts:
        yield Whole(id=whole.id, count=parts, whole=True)


def _notices(warned: Iterable[relations.Warned], *, by: str) -> list[Warned]:
    return [Warned(target=one.target, kind=one.kind, by=by) for one in warned]
