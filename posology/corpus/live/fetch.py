"""A fetch: its pages as files of a folder, and a journal by which it resumes.

::

    FOLDER/journal.json     what was asked for, and the place of the next page
    FOLDER/files/           pages, complete ones only
    FOLDER/fetch.json       its provenance, written last

A page is written, and then the journal that names it, each by one ``rename``: after a crash, no page that the journal
names is fetched again, and the query is not searched for again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from anyio import to_thread
from pydantic import ValidationError

from posology.corpus.files import read
from posology.corpus.items import Record
from posology.corpus.live.forms import Asked, Begun, Journal, Service, Wanted
from posology.corpus.live.question import ENOUGH, since
from posology.corpus.live.texts import Search, TextPlace
from posology.errors import FetchFailed
from posology.published.ingests import FetchedFile, FetchOutput, MissingText

FILES = "files"
_JOURNAL, _DONE, _LOCK = "journal.json", "fetch.json", "fetch.lock"
#: ids that did not come, of which the provenance lists as many
_LISTED = 100
#: maximum articles of one fetch whose full text is looked for
MAX_TEXTS = 1_000
#: of these the journal is written at once
_AT_ONCE = 20
#: place of full texts of a service
_OWN_PLACE = {"pubmed": "pmc", "europepmc": "europepmc"}


def fetched(folder: Path) -> FetchOutput | None:
    """Return the provenance of a complete fetch; ``None``: there is none in the folder."""
    try:
        return FetchOutput.model_validate_json((folder / _DONE).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


async def fetch(
    asked: Asked,
    service: Service,
    folder: Path,
    *,
    places: Sequence[TextPlace] = (),
    told: Callable[[Journal], None] = lambda _: None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> FetchOutput:
    """Fetch into a folder, or complete there what was interrupted; a complete fetch is returned as it is.

    Args:
        asked: what to fetch; that of an interrupted fetch is completed as it was begun.
        service: the service.
        folder: created if need be; its name is the fetch's id.
        places: where full texts are looked for, in this order.
        told: gets the journal after each page; what it raises ends the fetch, which resumes the next time.
        clock: the time, with a zone.

    Raises:
        FetchFailed: the service gave no usable reply; what came before is kept. Or another process fetches there.
        OSError: the folder cannot be written.
    """
    (folder / FILES).mkdir(mode=0o700, parents=True, exist_ok=True)
    with alone(folder, asked.service):
        if (done := fetched(folder)) is not None:
            return done
        journal = _read(folder / _JOURNAL)
        if journal is None:
            started = clock()
            begun = await service.begin(asked.relevant)
            kept = begun.model_copy(update={"state": None})
            journal = Journal(asked=asked, started=started, begun=kept, state=begun.state)
            write(folder / _JOURNAL, journal.model_dump_json())
        told(journal)
        if not journal.wider:
            journal = await _pages(journal, service, folder, told)
        journal = await _added(journal, service, folder, told)
        journal = await _widened(journal, service, folder, told)
        if journal.texts is None:
            journal = await to_thread.run_sync(_with_texts, journal, folder)
        search = Search(places, needed=_OWN_PLACE.get(asked.service))
        while journal.texts:
            journal = await _next_texts(journal, search, folder)
            told(journal)
        made = _provenance(journal, service, folder.name, clock())
        write(folder / _DONE, made.model_dump_json(indent=1))
        return made


async def _pages(
    journal: Journal, service: Service, folder: Path, told: Callable[[Journal], None]
) -> Journal:
    """Return the journal after the pages that are left of the query that was sent last."""
    while journal.state is not None:
        journal = await _next_page(journal, service, folder)
        told(journal)
    return journal


async def _next_page(journal: Journal, service: Service, folder: Path) -> Journal:
    assert journal.state is not None
    page = await service.page(journal.state)
    files = journal.files
    if page.content:
        files = (*files, _file(folder, f"page-{len(files) + 1:04}{page.suffix}", page.content))
    following = journal.model_copy(
        update={
            "state": page.state,
            "files": files,
            "records": journal.records + page.records,
            "missing": (*journal.missing, *page.missing),
        }
    )
    write(folder / _JOURNAL, following.model_dump_json())
    return following


async def _added(
    journal: Journal, service: Service, folder: Path, told: Callable[[Journal], None]
) -> Journal:
    """Return the journal after the query for what the service has added since a day, if one is given."""
    asked, query = journal.asked, journal.begun.query
    left = asked.limit - journal.records
    if asked.added_since is None or query not in asked.queries or journal.wider:
        return journal
    if journal.added is None and journal.begun.found and left > 0:
        newer = since(query, asked.service, asked.added_since)
        begun = await service.begin(asked.model_copy(update={"queries": (newer,), "limit": left}))
        added = begun.model_copy(update={"state": None, "notes": _noted(begun, newer)})
        journal = journal.model_copy(update={"added": added, "state": begun.state})
        write(folder / _JOURNAL, journal.model_dump_json())
        told(journal)
    return await _pages(journal, service, folder, told)


def _noted(begun: Begun, query: str) -> tuple[str, ...]:
    """Return the remarks on a query that was sent after the one that was taken."""
    return f"`{query}` finds {begun.found or 'nothing'}.", *(begun.notes if begun.found else ())


async def _widened(
    journal: Journal, service: Service, folder: Path, told: Callable[[Journal], None]
) -> Journal:
    """Return the journal after the wider queries of the question, each without what the one before it finds.

    A service that fails here takes nothing away: its failure is a remark.
    """
    asked, begun = journal.asked, journal.begun
    # of one that finds fewer, all wider ones were tried, and find no more
    if not (asked.wider and begun.found >= ENOUGH and begun.query in asked.queries):
        return journal
    queries = asked.queries[asked.queries.index(begun.query) :]
    try:
        while True:
            # not by _pages: if one fails, the journal here has those before it
            while journal.state is not None:
                journal = await _next_page(journal, service, folder)
                told(journal)
            number, left = len(journal.wider), asked.limit - journal.records
            if number + 1 >= len(queries) or left <= 0 or _stopped(journal):
                return journal
            query = f"({queries[number + 1]}) NOT ({queries[number]})"
            more = await service.begin(
                asked.model_copy(update={"queries": (query,), "limit": left})
            )
            more = more.model_copy(update={"notes": _noted(more, query)})
            journal = _with_wider(journal, folder, more)
    except FetchFailed as error:
        failed = Begun(query=None, found=0, notes=(f"A wider query failed: {error}",), state=None)
        return _with_wider(journal, folder, failed)


def _stopped(journal: Journal) -> bool:
    return bool(journal.wider) and journal.wider[-1].query is None


def _with_wider(journal: Journal, folder: Path, more: Begun) -> Journal:
    kept = (*journal.wider, more.model_copy(update={"state": None}))
    following = journal.model_copy(update={"wider": kept, "state": more.state})
    write(folder / _JOURNAL, following.model_dump_json())
    return following


async def _next_texts(journal: Journal, search: Search, folder: Path) -> Journal:
    assert journal.texts
    some, rest = journal.texts[:_AT_ONCE], journal.texts[_AT_ONCE:]
    files, counts = journal.files, Counter(journal.full_texts)
    why: dict[str, dict[str, str]] = {one.record: {} for one in some}
    copies: dict[str, str] = {}
    for place, found in await search.find(some):
        if found.content is not None:
            files = (*files, _file(folder, f"text-{len(files) + 1:04}.xml", found.content))
        counts[place] += len(found.whole)
        for record in found.whole:
            why.pop(record, None)
        for record, reason in found.why.items():
            why[record][place] = reason
        copies |= found.copies
    missing = tuple(
        MissingText(record=record, why=reasons, copy_at=copies.get(record))
        for record, reasons in why.items()
    )
    following = journal.model_copy(
        update={
            "texts": rest,
            "files": files,
            "full_texts": dict(+counts),
            "without": journal.without + len(missing),
            "told": (*journal.told, *missing)[:_LISTED],
        }
    )
    write(folder / _JOURNAL, following.model_dump_json())
    return following


def _with_texts(journal: Journal, folder: Path) -> Journal:
    """Return the journal with the articles whose full texts are fetched next, in the order of their records."""
    if not journal.asked.full_text:
        return journal.model_copy(update={"texts": ()})
    passages = (
        item.passage
        for file in journal.files
        for item in read(folder / FILES / file.name)
        if isinstance(item, Record)
    )
    known = {
        one.parent or one.id: Wanted(record=one.parent or one.id, pmcid=one.pmcid, doi=one.doi)
        for one in passages
    }
    return journal.model_copy(update={"texts": tuple(known.values())[:MAX_TEXTS]})


def _provenance(journal: Journal, service: Service, name: str, ended: datetime) -> FetchOutput:
    asked, begun = journal.asked, journal.begun
    return FetchOutput(
        id=name,
        service=asked.service,
        url=service.url,
        question=asked.question,
        query=begun.query,
        newer=None if journal.added is None else journal.added.query,
        wider=tuple(one.query for one in journal.wider if one.query is not None),
        translation=begun.translation,
        started=journal.started,
        ended=ended,
        found=journal.found,
        limit=asked.limit,
        records=journal.records,
        full_texts=sum(journal.full_texts.values()),
        text_places=journal.full_texts,
        without_text=journal.without,
        texts_missing=journal.told,
        missing=journal.missing[:_LISTED],
        notes=tuple(
            note
            for one in (begun, journal.added, *journal.wider)
            if one is not None
            for note in one.notes
        ),
        files=journal.files,
        sha256=hashlib.sha256("".join(f"{f.sha256}\n" for f in journal.files).encode()).hexdigest(),
    )


def _file(folder: Path, name: str, content: bytes) -> FetchedFile:
    write(folder / FILES / name, content)
    return FetchedFile(name=name, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


def _read(path: Path) -> Journal | None:
    try:
        return Journal.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def write(path: Path, content: str | bytes) -> None:
    """Write a file of a folder by one ``rename``: it is there as a whole, or not at all."""
    # a name that no reader takes for literature
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


@contextmanager
def alone(folder: Path, service: str) -> Iterator[None]:
    """Hold a kernel lock on a folder, which is free when its process dies.

    Raises:
        FetchFailed: another process holds it.
    """
    with (folder / _LOCK).open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FetchFailed(
                f"another process is fetching into {folder}: wait for it", service=service
            ) from None
        yield
