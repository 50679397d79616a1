"""PubMed, by NCBI's E-utilities (*Entrez Programming Utilities Help*, NBK25501).

The ids of a search are kept, so that a resumed fetch brings the same records. Pages of records come from NCBI's history
server; when it has forgotten the list, the ids that are left are posted again.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from posology.corpus.decoding import xml_parser
from posology.corpus.items import Deletion, Item, Record
from posology.corpus.jats import reader as jats
from posology.corpus.live.forms import Asked, Begun, Links, Page, PubMedState, State, Text
from posology.corpus.live.question import first_enough
from posology.corpus.live.wire import Unusable, Wire, said
from posology.corpus.pubmed import reader as files
from posology.errors import BadFile, BadRecord, FetchFailed

#: requests a second, without and with an API key (NBK25497)
PER_SECOND, PER_SECOND_WITH_KEY = 3.0, 10.0
#: records in a page
PAGE = 200
#: names of ELink's lists (NBK25499)
_LINKS: dict[Links, str] = {"related": "pubmed_pubmed", "cited_by": "pubmed_pubmed_citedin"}
_ERROR = re.compile(rb"<ERROR>(.*?)</ERROR>", re.DOTALL)
#: of articles that may not be sent, in an element or an attribute of a set without articles
_CLOSED = re.compile(rb"PMCID is not available", re.IGNORECASE)
_ID = re.compile(r"[1-9][0-9]{0,11}")
#: of a history that is no longer there
_GONE = re.compile(r"obtain query|webenv|query_key", re.IGNORECASE)
_EMPTY = re.compile(r"empty (?:result|id list)|id list is empty", re.IGNORECASE)
#: in a search that cannot succeed, however often it is sent
_WRONG = re.compile(r"term|syntax|invalid|empty", re.IGNORECASE)


class _Gone(Exception):
    """The history server has forgotten a list."""


class PubMed:
    """PubMed; see :class:`~posology.corpus.live.forms.Service`."""

    texts_at_once = 20

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.url = wire.base_url

    async def begin(self, asked: Asked) -> Begun:
        """Search, or post the given ids."""
        if asked.links is not None:
            return await self._linked(asked.pmids, _LINKS[asked.links], asked.limit)
        if asked.pmids:
            ids = asked.pmids[: asked.limit]
            state = await self._posted(ids)
            return Begun(query=None, found=len(asked.pmids), state=state)
        return await first_enough(asked.queries, lambda query: self._search(query, asked.limit))

    async def page(self, state: State) -> Page:
        """Return the page at a place; ids whose list is forgotten are posted again."""
        assert isinstance(state, PubMedState)
        try:
            return await self._page(state)
        except _Gone:
            try:
                return await self._page(await self._posted(state.ids))
            except _Gone:
                raise FetchFailed(
                    "pubmed did not keep the list of ids that was sent to it: try again later",
                    service="pubmed",
                ) from None

    async def texts(self, pmcids: Sequence[str]) -> Text | None:
        """Return the full texts of articles; an article that is not open comes without its body, and does not count."""
        form = {
            "db": "pmc",
            "id": ",".join(one.removeprefix("PMC") for one in pmcids),
            "retmode": "xml",
        }
        return await self._wire.post("efetch.fcgi", form, lambda body: _texts(body, pmcids))

    async def _search(self, query: str, limit: int) -> Begun:
        form = {
            "db": "pubmed",
            "term": query,
            "usehistory": "y",
            "retmode": "json",
            "retmax": str(limit),
            "sort": "relevance",
        }
        return await self._wire.post("esearch.fcgi", form, lambda body: _found(body, query, limit))

    async def _linked(self, pmids: Sequence[str], name: str, limit: int) -> Begun:
        """Return the articles that ELink has for others, the most similar first, without the given ones."""
        form = {
            "dbfrom": "pubmed",
            "db": "pubmed",
            "linkname": name,
            "cmd": "neighbor",
            "id": ",".join(pmids),
            "retmode": "json",
        }
        ids = await self._wire.post("elink.fcgi", form, lambda body: _links(body, name))
        found = tuple(one for one in ids if one not in pmids)
        state = await self._posted(found[:limit]) if found else None
        return Begun(query=f"{name} of {', '.join(pmids)}", found=len(found), state=state)

    async def _posted(self, ids: Sequence[str]) -> PubMedState:
        form = {"db": "pubmed", "id": ",".join(ids)}
        return await self._wire.post("epost.fcgi", form, lambda body: _post(body, ids))

    async def _page(self, state: PubMedState) -> Page:
        form = {
            "db": "pubmed",
            "WebEnv": state.webenv,
            "query_key": state.key,
            "retstart": str(state.start),
            "retmax": str(min(PAGE, len(state.ids))),
            "retmode": "xml",
        }
        return await self._wire.post("efetch.fcgi", form, lambda body: _records(body, state))


def _found(body: bytes, query: str, limit: int) -> Begun:
    reply = parsed(body)
    if "error" in reply:
        raise Unusable(said(str(reply["error"])))
    result = reply.get("esearchresult")
    if not isinstance(result, dict):
        raise Unusable("no esearchresult")
    if error := result.get("ERROR"):
        if _WRONG.search(str(error)):
            raise FetchFailed(f"pubmed refuses the query: {said(str(error))}", service="pubmed")
        raise Unusable(said(str(error)))
    try:
        count = int(result["count"])
        # a service may send more than it was asked for
        ids = tuple(dict.fromkeys(str(one) for one in result["idlist"][:limit]))
        webenv, key = str(result["webenv"]) if ids else "", str(result["querykey"]) if ids else ""
    except (KeyError, TypeError, ValueError) as error:
        raise Unusable(f"esearchresult without {error}") from None
    if not all(map(_ID.fullmatch, ids)):
        raise Unusable("an id that is not a number")
    translation = result.get("querytranslation")
    return Begun(
        query=query,
        found=count,
        translation=None if not translation else str(translation)[:4_000],
        notes=tuple(_remarks(result)),
        state=PubMedState(ids=ids, webenv=webenv, key=key) if ids else None,
    )


def _remarks(result: dict[str, Any]) -> Iterator[str]:
    """Yield the service's warnings: words that it does not know, and phrases that it takes apart."""
    for group in ("errorlist", "warninglist"):
        lists = result.get(group)
        if isinstance(lists, dict):
            for kind, words in lists.items():
                # the same as the number of records
                if isinstance(words, list) and words and kind != "outputmessages":
                    yield f"PubMed: {said(kind)}: {said(', '.join(map(str, words)))}"


def _post(body: bytes, ids: Sequence[str]) -> PubMedState:
    root = _xml(body)
    key, webenv = root.findtext("QueryKey"), root.findtext("WebEnv")
    if not key or not webenv:
        raise Unusable(said(root.findtext("ERROR") or "no WebEnv"))
    return PubMedState(ids=tuple(ids), webenv=webenv, key=key)


def _links(body: bytes, name: str) -> tuple[str, ...]:
    reply = parsed(body)
    sets = reply.get("linksets")
    if reply.get("ERROR") or not isinstance(sets, list):
        raise Unusable(said(str(reply.get("ERROR") or "no linksets")))
    try:
        ids = [
            str(one)
            for some in sets
            for links in some.get("linksetdbs", ())
            if links.get("linkname") == name
            for one in links.get("links", ())
        ]
    except (AttributeError, TypeError):
        raise Unusable("linksets of another form") from None
    if not all(map(_ID.fullmatch, ids)):
        raise Unusable("an id that is not a number")
    return tuple(dict.fromkeys(ids))


def _records(body: bytes, state: PubMedState) -> Page:
    got: set[str] = set()
    asked, rest = state.ids[:PAGE], state.ids[PAGE:]
    if not _empty(body):
        for item in _items(body, files.read, files.ROOTS):
            if isinstance(item, Record) and item.passage.pmid:
                got.add(item.passage.pmid)
            elif isinstance(item, BadRecord) and item.record:
                got.add(item.record.removeprefix("pmid:"))
            elif isinstance(item, Deletion):
                got.add(item.id.removeprefix("pmid:"))
        if got.difference(asked):
            # it would replace another record of the index
            raise Unusable("it has a record that was not requested")
    return Page(
        content=body if got else b"",
        suffix=".xml",
        records=len(got),
        missing=tuple(one for one in asked if one not in got),
        state=state.model_copy(update={"ids": rest, "start": state.start + len(asked)})
        if rest
        else None,
    )


def _texts(body: bytes, pmcids: Sequence[str]) -> Text | None:
    if _empty(body) or (b"<article" not in body and _CLOSED.search(body)):
        return None
    return read_texts(body, pmcids)


def read_texts(body: bytes, pmcids: Sequence[str]) -> Text | None:
    """Return articles in JATS, and those of them that have more than an abstract; ``None``: none has.

    Raises:
        Unusable: the reply is cut short, is no JATS, or has an article that was not requested.
    """
    for item in _items(body, jats.read, jats.ROOTS):
        if not isinstance(item, Record):
            continue
        if item.passage.pmcid not in pmcids:
            raise Unusable("it has an article that was not requested")
    whole = tuple(dict.fromkeys(jats.with_body(BytesIO(body))))
    return Text(content=body, whole=whole) if whole else None


def _empty(body: bytes) -> bool:
    """Return whether a reply holds no records, and says so.

    Raises:
        _Gone: the history server has forgotten the list.
        Unusable: it holds another error.
    """
    if (found := _ERROR.search(body[:10_000])) is None:
        return False
    reason = said(found[1])
    if _EMPTY.search(reason):
        return True
    if _GONE.search(reason):
        raise _Gone
    raise Unusable(reason)


def _items(
    body: bytes, read: Callable[[Path], Iterator[Item]], roots: Sequence[str]
) -> Iterator[Item]:
    """Yield what the reader of files reads of a reply.

    Raises:
        Unusable: it is cut short, or something else.
    """
    from posology.corpus.files import root_of

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reply.xml"
        path.write_bytes(body)
        if root_of(path) not in roots:
            raise Unusable(f"neither records nor an error: {said(body) or 'an empty reply'}")
        for item in read(path):
            if isinstance(item, BadFile):
                raise Unusable(item.reason)
            yield item


def parsed(body: bytes) -> dict[str, Any]:
    """Return a reply's JSON object.

    Raises:
        Unusable: it is none.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Unusable(f"no JSON: {said(body) or 'an empty reply'}") from None
    if not isinstance(found, dict):
        raise Unusable("no JSON object")
    return found


def _xml(body: bytes) -> Any:
    from lxml import etree

    try:
        return etree.fromstring(body, xml_parser())
    except etree.XMLSyntaxError:
        raise Unusable(f"not well-formed XML: {said(body) or 'an empty reply'}") from None
