"""Europe PMC, by its RESTful web service: abstracts of PubMed, preprints and others, and open full texts.

Pages are in the order of a cursor, which says where the next one begins. A page becomes lines of JSON
(:mod:`posology.corpus.jsonl`); a record of PubMed has the same id as in NLM's files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from posology.corpus.documents.markup import page_of
from posology.corpus.gaps import Gaps
from posology.corpus.live.forms import Asked, Begun, CursorState, Page, State, Text
from posology.corpus.live.pubmed import parsed, read_texts
from posology.corpus.live.question import first_enough
from posology.corpus.live.wire import Unusable, Wire, said
from posology.corpus.record import plain_doi, plain_pmcid
from posology.errors import FetchFailed

#: requests a second; the service publishes no limit, and NCBI's is polite
PER_SECOND = 3.0
#: records in a page; the service sends up to 1,000
PAGE = 200
#: PMIDs in one query
_IDS = 500
_NOT_FOUND = 404
#: the query of given PMIDs, and one of them
_GIVEN = re.compile(r"SRC:MED AND \((?:EXT_ID:[0-9]+(?: OR )?)+\)")
_PMID = re.compile(r"EXT_ID:([0-9]+)")
#: a withdrawn preprint says that it is no part of the record any more, as a retracted article does
_RETRACTED = frozenset(
    {"retracted publication", "retracted article", "preprint-withdrawal", "preprint-removal"}
)
_CONCERN = "expression of concern in"


class EuropePMC:
    """Europe PMC; see :class:`~posology.corpus.live.forms.Service`."""

    texts_at_once = 1

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.url = wire.base_url

    async def begin(self, asked: Asked) -> Begun:
        """Count what matches; the cursor of the first page is known without a search."""
        if len(asked.pmids) > _IDS:
            raise FetchFailed(
                f"europepmc takes at most {_IDS} PMIDs (got {len(asked.pmids)}): fetch them from pubmed",
                service="europepmc",
            )

        async def search(query: str) -> Begun:
            form = {"query": query, "format": "json", "resultType": "idlist", "pageSize": "1"}
            found = await self._wire.post("searchPOST", form, _count)
            state = CursorState(query=query, left=asked.limit) if found else None
            return Begun(query=query, found=found, state=state)

        if asked.links is not None:
            return await search(" OR ".join(f"CITES:{one}_MED" for one in asked.pmids))
        if asked.queries:
            return await first_enough(asked.queries, search)
        # as many as are wanted: none of the rest is missing
        wanted = asked.pmids[: asked.limit]
        given = f"SRC:MED AND ({' OR '.join(f'EXT_ID:{one}' for one in wanted)})"
        begun = await search(given)
        state = CursorState(query=given, left=len(wanted))
        return begun.model_copy(update={"query": None, "state": state})

    async def page(self, state: State) -> Page:
        """Return the page at a cursor."""
        assert isinstance(state, CursorState)
        form = {
            "query": state.query,
            "format": "json",
            "resultType": "core",
            "pageSize": str(min(PAGE, state.left)),
            "cursorMark": state.cursor,
        }
        return await self._wire.post("searchPOST", form, lambda body: _page(body, state))

    async def texts(self, pmcids: Sequence[str]) -> Text | None:
        """Return the full text of one article; ``None``: it is not open."""
        (pmcid,) = pmcids
        if plain_pmcid(pmcid) is None:
            return None
        try:
            return await self._wire.get(
                f"{pmcid}/fullTextXML", lambda body: read_texts(body, pmcids)
            )
        except FetchFailed as failed:
            if failed.status == _NOT_FOUND:
                return None
            raise


def _count(body: bytes) -> int:
    reply = _checked(body)
    try:
        return int(reply["hitCount"])
    except (KeyError, TypeError, ValueError):
        raise Unusable("no hitCount") from None


def _checked(body: bytes) -> dict[str, Any]:
    reply = parsed(body)
    if reason := reply.get("errMsg") or reply.get("error"):
        raise Unusable(said(str(reason)))
    return reply


def _page(body: bytes, state: CursorState) -> Page:
    reply = _checked(body)
    results = reply.get("resultList")
    sent = results.get("result") if isinstance(results, dict) else None
    if not isinstance(sent, list):
        raise Unusable("no resultList")
    rows = [row for one in sent if (row := as_row(one)) is not None]
    wanted = _PMID.findall(state.query) if _GIVEN.fullmatch(state.query) else []
    came = {row["id"].removeprefix("pmid:") for row in rows}
    if wanted and not came.issubset(wanted):
        raise Unusable("it has a record that was not requested")
    del rows[state.left :]
    got = state.got | came if wanted else state.got
    after = reply.get("nextCursorMark")
    left = state.left - len(sent)
    # at its end, the service repeats the cursor or leaves it out
    ended = not sent or left <= 0 or not after or after == state.cursor
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return Page(
        content=lines.encode(),
        suffix=".jsonl",
        records=len(rows),
        missing=tuple(one for one in wanted if one not in got) if ended else (),
        state=None
        if ended
        else state.model_copy(update={"cursor": str(after), "left": left, "got": got}),
    )


#: names of a journal, the one that PubMed's records have first
_JOURNAL = ("medlineAbbreviation", "isoabbreviation", "title")


def as_row(result: object) -> dict[str, Any] | None:
    """Return a result as a line of :mod:`posology.corpus.jsonl`; ``None``: it has no id.

    A result without an abstract becomes a line without a text, which the reader reports.
    """
    if not isinstance(result, dict) or not (known := _string(result, "id")):
        return None
    source, pmid = _string(result, "source") or "", _string(result, "pmid")
    kinds = list(_strings(_within(result, "pubTypeList", "pubType")))
    corrections = _within(result, "commentCorrectionList", "commentCorrection")
    notices = {str(one.get("type", "")).lower() for one in corrections if isinstance(one, dict)}
    journal = result.get("journalInfo")
    titled = journal.get("journal") if isinstance(journal, dict) else None
    authors = _within(result, "authorList", "author")
    return {
        "id": f"pmid:{pmid}" if source == "MED" and pmid else f"europepmc:{source}:{known}",
        "text": "\n".join(_lines(_string(result, "abstractText") or "")),
        "title": " ".join(_lines(_string(result, "title") or "")),
        "pmid": pmid,
        # it becomes an address
        "pmcid": plain_pmcid(_string(result, "pmcid") or ""),
        "doi": plain_doi(_string(result, "doi") or ""),
        # NLM's abbreviation first, as of PubMed's records
        "journal": next(filter(None, (_string(titled, name) for name in _JOURNAL)), None)
        if isinstance(titled, dict)
        else None,
        "year": _string(result, "pubYear"),
        "published": _string(result, "firstPublicationDate"),
        "publication_types": kinds,
        "mesh": [
            name
            for one in _within(result, "meshHeadingList", "meshHeading")
            if isinstance(one, dict) and (name := _string(one, "descriptorName"))
        ],
        "languages": [language] if (language := _string(result, "language")) else [],
        "retracted": bool(_RETRACTED & {kind.lower() for kind in kinds}),
        "concern": _CONCERN in notices,
        "authors": [
            {
                "family": _string(one, "lastName") or "",
                "given": _string(one, "firstName") or _string(one, "initials") or "",
                "name": _string(one, "collectiveName") or _string(one, "fullName") or "",
            }
            for one in authors
            if isinstance(one, dict)
        ],
        "source": "europepmc",
    }


def _lines(markup: str) -> Iterator[str]:
    """Yield an abstract's paragraphs, each after its heading."""
    page = page_of(markup) if markup.strip() else None
    for piece in page.pieces() if page else ():
        yield Gaps.marked(f"{piece.section}: {piece.text}" if piece.section else piece.text)


def _string(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value.strip() or None if isinstance(value, str) else None


def _strings(values: Sequence[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str) and value.strip():
            yield value.strip()


def _within(fields: Mapping[str, Any], outer: str, inner: str) -> Sequence[Any]:
    found = fields.get(outer)
    values = found.get(inner) if isinstance(found, dict) else None
    return values if isinstance(values, list) else ()
