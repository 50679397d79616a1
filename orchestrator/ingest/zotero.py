"""``zotero:…`` as a path of an ingest: the changes of a library since the last ingest into this index, as files.

::

    POSOLOGY_HOME/zotero/LIBRARY/library.json       items of the library, and its version
    POSOLOGY_HOME/zotero/LIBRARY/INDEX/index.json   what of it is in the index
    POSOLOGY_HOME/zotero/LIBRARY/INDEX/SOURCE/      changes that are not in the index yet, with their attachments

``index.json`` changes only after the index has committed. What was interrupted is compared and made again; attachments
that are there are not fetched again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from orchestrator.ingest.libraries import collection_key, is_library, open_library, parse
from orchestrator.service import index_place
from orchestrator.settings import Settings
from posology.corpus import pdf
from posology.corpus.items import part_id
from posology.corpus.live.fetch import alone, write
from posology.corpus.zotero.documents import Document, documents, item_of
from posology.corpus.zotero.library import Library
from posology.corpus.zotero.wire import SERVICE
from posology.errors import IndexMissing
from posology.index.store import Index

#: documents a file: an interrupted ingest reads one file's attachments again
_BATCH = 50
#: ids that are looked up in an index at once
_IDS = 1_000
#: attachments between two lines of progress
_TELL = 25
_ABSENT, _WHOLE = "absent", "full text"


class _Known(BaseModel):
    """The items of a library, at a version."""

    version: int = 0
    collections: dict[str, tuple[str, str]] = {}
    items: dict[str, dict[str, Any]] = {}


class _State(BaseModel):
    """The part of a library that is in an index."""

    #: keys of the collections that were ingested; empty: the whole library
    followed: set[str] = set()
    #: digest of each document's fields and attachment, and its form in the index, by id
    applied: dict[str, tuple[str, str]] = {}
    #: path, bytes and time of change (ns) of each attachment that was read where it lies, by the document's id
    files: dict[str, tuple[str, int, int]] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirrored:
    """Paths of an ingest, with files in place of libraries."""

    paths: tuple[Path, ...]
    #: what is kept when the index has committed
    _after: list[Callable[[], None]] = field(default_factory=list)

    def applied(self) -> None:
        """Keep that the index has the changes; call it when it has committed them."""
        for after in self._after:
            after()


@contextmanager
def mirrored(
    paths: Sequence[Path], settings: Settings, place: str | Path | None, say: Callable[[str], None]
) -> Iterator[Mirrored]:
    """Fetch the changes of the libraries among the paths, and keep others from doing so during the block. Blocking.

    Args:
        paths: files, folders, and ``zotero:[group/ID/][COLLECTION]``.
        settings: addresses and key of Zotero, and where its items are kept.
        place: the index, as given.
        say: shows a line.

    Raises:
        InputError: there is no such collection, or several have its name.
        ConfigurationError: no library can be asked: neither Zotero on this machine nor a key.
        FetchFailed: Zotero refused, or gave no usable reply; what came before is kept.
    """
    files: list[Path] = []
    after: list[Callable[[], None]] = []
    with ExitStack() as stack:
        for path in paths:
            if not is_library(path):
                files.append(path)
                continue
            group, name = parse(str(path))
            with open_library(settings, group) as library:
                source = _Source(library, group, settings, place, say)
                stack.enter_context(source.opened(name))
                files += source.files()
                after.append(source.applied)
        yield Mirrored(paths=tuple(files), _after=after)


class _Source:
    """One library, and what of it an index has."""

    def __init__(
        self,
        library: Library,
        group: str | None,
        settings: Settings,
        place: str | Path | None,
        say: Callable[[str], None],
    ) -> None:
        self._library = library
        self._group = group
        self._say = say
        self._place = index_place(settings, place)
        where = self._place.folder.resolve() if self._place.folder is not None else self._place.uri
        home = Path(settings.home) / "zotero" / _digest(library.url, library.path)
        self._known_file = home / "library.json"
        self._home = home / _digest(str(where))
        self._state_file = self._home / "index.json"
        self._rows: dict[str, tuple[str, str]] = {}
        self._files: dict[str, tuple[str, int, int]] = {}
        self._gone: list[str] = []

    @contextmanager
    def opened(self, name: str) -> Iterator[None]:
        """Hold the folder of a collection's changes during the block."""
        self._name = name
        self._folder = self._home / _digest(name)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone(self._folder, SERVICE):
            yield

    def files(self) -> list[Path]:
        """Fetch the changes, and return the files with them.

        Raises:
            InputError: there is no such collection, or several have its name.
            FetchFailed: Zotero gave no usable reply.
        """
        known = self._refreshed()
        self._key = collection_key(self._name, known.collections)
        state = _stored(self._state_file, _State)
        wanted = self._documents(known, {self._key})
        kept = self._documents(known, state.followed | {self._key}).keys()
        self._gone = sorted(state.applied.keys() - kept)
        present = self._present(state.applied)
        changed = {
            one.id: one
            for one in wanted.values()
            if one.id not in present
            or state.applied[one.id][0] != _signature(one)
            or _is_edited(state.files.get(one.id))
        }
        self._say(
            f"{SERVICE}: {len(wanted):,} items with a text, {len(changed):,} new or changed, {len(self._gone):,} removed"
        )
        return self._written(changed, state)

    def applied(self) -> None:
        """Keep that the index has the changes."""
        state = _stored(self._state_file, _State)
        have = _digests(Index.open(self._place), _names(self._rows)) if self._rows else set()
        for name, (signature, form) in self._rows.items():
            there = {name, part_id(name, 1)} & have
            state.applied[name] = (signature, form if there else _ABSENT)
            state.files.pop(name, None)
        state.files |= self._files
        for name in self._gone:
            state.applied.pop(name, None)
            state.files.pop(name, None)
        state.followed.add(self._key)
        write(self._state_file, state.model_dump_json())
        for file in self._folder.iterdir():
            if file.name != "fetch.lock":
                file.unlink()

    def _refreshed(self) -> _Known:
        """Return the library as it is now.

        The local API has no list of deleted items, and what is edited there keeps its version until it is synchronised:
        there all items are read, which takes milliseconds a page.
        """
        library = self._library
        known = _Known() if library.local else _stored(self._known_file, _Known)
        if known.version and library.unchanged(known.version):
            return known
        found = library.changes(known.version)
        items = {**known.items}
        for row in found.items:
            if (item := item_of(row)) is not None:
                items[item["key"]] = item
        for key in found.deleted:
            items.pop(key, None)
        now = _Known(version=found.version, collections=library.collections(), items=items)
        if not library.local:
            write(self._known_file, now.model_dump_json())
        return now

    def _documents(self, known: _Known, keys: Collection[str]) -> dict[str, Document]:
        within = None if "" in keys else _within(keys, known.collections)
        return documents(
            known.items.values(),
            group=self._group,
            collections=within,
            local=self._library.local,
        )

    def _present(self, applied: Mapping[str, tuple[str, str]]) -> set[str]:
        """Return the ids of those that are in the index still, and of those that had no text to read."""
        absent = {name for name, (_, form) in applied.items() if form == _ABSENT}
        try:
            have = _digests(Index.open(self._place), _names(applied.keys() - absent))
        except IndexMissing:
            return set()
        return absent | {name for name in applied if {name, part_id(name, 1)} & have}

    def _written(self, changed: Mapping[str, Document], state: _State) -> list[Path]:
        """Write the changes, and return their files."""
        lines = [_line(id=name, deleted=True) for name in self._gone]
        keep = {"fetch.lock"}
        if any(each.suffix == ".pdf" for each in changed.values()):
            pdf.require()
        missing = fetched = 0
        for document in changed.values():
            name = None
            if document.attachment is not None:
                name = self._fetched(document)
                missing += name is None
                fetched += 1
                if not fetched % _TELL:
                    self._say(f"{SERVICE}: {fetched:,} attachments fetched")
            if name is None and not document.abstract:
                continue
            keep.add(name or "")
            if name is None and state.applied.get(document.id, ("", ""))[1] == _WHOLE:
                # the parts of its full text
                lines.append(_line(id=document.id, deleted=True))
            lines.append(_line(id=document.id, values=document.values, file=name))
            # what is not on this machine yet is looked for again
            again = name is None and document.attachment is not None and self._library.local
            self._rows[document.id] = (
                "" if again else _signature(document),
                _WHOLE if name else "abstract",
            )
        if missing:
            self._say(f"{SERVICE}: {missing:,} attachments have no file there: abstracts are read")
        files = []
        for number, some in enumerate(_lots(lines, _BATCH)):
            file = self._folder / f"{number:06}.zotero"
            content = "".join(some)
            # the index knows by size and time how far it has read a file
            if not file.is_file() or file.read_text(encoding="utf-8") != content:
                write(file, content)
            files.append(file)
        for file in self._folder.iterdir():
            if file.name not in keep and file not in files:
                file.unlink()
        return files

    def _fetched(self, document: Document) -> str | None:
        """Put a document's attachment beside its file, and return its name; ``None``: Zotero has no such file."""
        assert document.attachment is not None
        key = document.attachment["key"]
        path = self._folder / f"{key}_{_signature(document)}{document.suffix}"
        if not self._library.local and path.exists():
            return path.name
        content = self._library.file(key, str(document.attachment.get("filename", "")))
        if content is None:
            return None
        if isinstance(content, Path):
            # before it is read: what is edited meanwhile is read again
            stamp = self._files[document.id] = _stamp(content)
            path = path.with_name(
                f"{key}_{_digest(_signature(document), *map(str, stamp))}{document.suffix}"
            )
            path.unlink(missing_ok=True)
            path.symlink_to(content)
        else:
            write(path, content)
        return path.name


def _within(keys: Collection[str], known: Mapping[str, tuple[str, str]]) -> set[str]:
    """Return the keys of collections and of those in them, at any depth."""
    found = set(keys) & known.keys()
    while more := {key for key, (_, parent) in known.items() if parent in found} - found:
        found |= more
    return found


def _signature(one: Document) -> str:
    file = one.attachment or {}
    which = [file.get(name) for name in ("key", "version", "md5", "mtime", "contentType")]
    return _digest(json.dumps([dict(one.values), which], sort_keys=True))


def _stamp(file: Path) -> tuple[str, int, int]:
    found = file.stat()
    return str(file), found.st_size, found.st_mtime_ns


def _is_edited(read: tuple[str, int, int] | None) -> bool:
    """Return whether a file has changed since it was read; what cannot be reached stays as it was read."""
    if read is None:
        return False
    try:
        return _stamp(Path(read[0])) != read
    except OSError:
        return False


def _line(**row: Any) -> str:
    return json.dumps(row) + "\n"


def _names(ids: Collection[str]) -> list[str]:
    return [name for one in ids for name in (one, part_id(one, 1))]


def _digests(index: Index, names: Sequence[str]) -> set[str]:
    view = index.newest()
    return {name for some in _lots(names, _IDS) for name in view.digests(some)}


def _lots(of: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (of[start : start + size] for start in range(0, len(of), size))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


_Form = TypeVar("_Form", bound=BaseModel)


def _stored(path: Path, form: type[_Form]) -> _Form:
    """Return what a file holds; what is not there, or was written by another version, is begun anew."""
    try:
        return form.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return form()
