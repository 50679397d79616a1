"""Items of a library as documents: their fields, and the attachment that is their full text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from posology.corpus.references import fields

#: suffixes by the media type of an attachment, in the order of preference
_TYPES = {
    "application/pdf": ".pdf",
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "text/plain": ".txt",
}
_ORDER = tuple(dict.fromkeys(_TYPES.values()))
#: characters of a field; an item is one line of a file
_LONGEST = 1_000_000
_KEY = re.compile(r"[A-Z0-9]{8}")
#: fields that name where an item was published, the most specific first
_JOURNALS = (
    "publicationTitle", "bookTitle", "proceedingsTitle", "encyclopediaTitle", "websiteTitle", "repository", "publisher",
    "university", "institution",
)  # fmt: skip
#: fields of items that are kept of a library
_KEPT = (
    *("key", "version", "itemType", "title", "creators", "abstractNote", "date", "DOI", "extra", "url", "language"),
    *("collections", "parentItem", "deleted", "dateAdded", "contentType", "linkMode", "filename", "md5", "mtime"),
    *_JOURNALS,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """An item that has a text."""

    #: see :func:`document_id`
    id: str
    #: texts by the names of :data:`posology.corpus.references.fields.FIELDS`
    values: Mapping[str, tuple[str, ...]]
    #: the attachment that is its full text; ``None``: it has none
    attachment: Mapping[str, Any] | None
    added: str

    @property
    def abstract(self) -> bool:
        """Return whether it has an abstract."""
        return bool(fields.bodies(self.values.get("text", ())))

    @property
    def suffix(self) -> str:
        """Return the suffix of its attachment."""
        return "" if self.attachment is None else _TYPES[self.attachment["contentType"]]


def document_id(key: str, group: str | None) -> str:
    """Return the id of an item: ``zotero:KEY``, of a group ``zotero:groups/ID/KEY``."""
    return f"zotero:{key}" if group is None else f"zotero:groups/{group}/{key}"


def item_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an item as it is kept, from its row of the API; ``None``: it is a note, an annotation or broken."""
    data = row["data"]
    if not _KEY.fullmatch(str(data.get("key"))):
        return None
    if data.get("itemType") in ("note", "annotation"):
        return None
    meta = row.get("meta")
    parsed = meta.get("parsedDate") if isinstance(meta, dict) else None
    return {name: data[name] for name in _KEPT if data.get(name)} | {"parsedDate": parsed or ""}


def documents(
    items: Iterable[Mapping[str, Any]],
    *,
    group: str | None,
    collections: AbstractSet[str] | None,
    local: bool,
) -> dict[str, Document]:
    """Return the documents of a library by id, those added first before.

    Args:
        items: as :func:`item_of` keeps them.
        group: id of the library's group.
        collections: keys of collections; ``None``: all items.
        local: whether linked files can be read.
    """
    tops, children = [], dict[str, list[Mapping[str, Any]]]()
    for item in items:
        if item.get("deleted"):
            continue
        usable = item.get("contentType") in _TYPES and item.get("linkMode") != "linked_url"
        usable = usable and (local or item.get("linkMode") != "linked_file")
        if item["itemType"] != "attachment":
            tops.append(item)
        elif usable and (parent := item.get("parentItem")):
            children.setdefault(parent, []).append(item)
        elif usable:
            tops.append(item)
            children[item["key"]] = [item]
    read = []
    for item in tops:
        if collections is not None and collections.isdisjoint(item.get("collections", ())):
            continue
        files = sorted(children.get(item["key"], ()), key=_rank)
        one = Document(
            id=document_id(item["key"], group),
            values=_values(item),
            attachment=files[0] if files else None,
            added=str(item.get("dateAdded", "")),
        )
        if one.attachment is not None or one.abstract:
            read.append(one)
    return {one.id: one for one in sorted(read, key=lambda one: (one.added, one.id))}


def _rank(attachment: Mapping[str, Any]) -> tuple[int, str, str]:
    """Zotero opens the oldest PDF of an item, too."""
    suffix = _TYPES[attachment["contentType"]]
    return _ORDER.index(suffix), str(attachment.get("dateAdded", "")), attachment["key"]


def _values(item: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    if item["itemType"] == "attachment":
        # its title is a file name: the reader finds a better one
        return {}
    journal = next((item[name] for name in _JOURNALS if item.get(name)), "")
    values: dict[str, list[Any]] = {
        "title": [item.get("title")],
        "text": [item.get("abstractNote")],
        "doi": [item.get("DOI")],
        "journal": [journal],
        "authors": [_name(one) for one in item.get("creators", ()) if isinstance(one, dict)],
        "date": [item.get("parsedDate"), item.get("date")],
        "types": [item.get("itemType")],
        "languages": [item.get("language")],
        "notes": [item.get("extra"), item.get("url")],
    }
    return {
        name: texts
        for name, some in values.items()
        if (texts := tuple(one[:_LONGEST] for one in some if isinstance(one, str) and one))
    }


def _name(creator: Mapping[str, Any]) -> str:
    if creator.get("creatorType") not in ("author", "bookAuthor", "contributor", None):
        return ""
    family, given = str(creator.get("lastName") or ""), str(creator.get("firstName") or "")
    return f"{family}, {given}" if family and given else family or str(creator.get("name") or given)
