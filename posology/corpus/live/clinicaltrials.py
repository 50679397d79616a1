"""ClinicalTrials.gov, by its API 2: study records with their posted results.

A page is kept as it came: its reader is that of downloaded records (:mod:`posology.corpus.clinicaltrials.reader`). The API
takes ``GET`` alone, so the query stands in the address; no key and no address of a person does.
"""

from __future__ import annotations

import re
from typing import Any

from posology.corpus.clinicaltrials.fields import texts
from posology.corpus.clinicaltrials.protocol import number_of
from posology.corpus.live.forms import Asked, Begun, CursorState, Page, State
from posology.corpus.live.pubmed import parsed
from posology.corpus.live.question import first_enough
from posology.corpus.live.wire import Unusable, Wire

#: requests a second; the service is known to refuse more than some 50 a minute
PER_SECOND = 0.8
#: records in a page; one with results may have a megabyte
PAGE = 50
_START = "*"
#: the query of given studies
_GIVEN = re.compile(r"NCT[0-9]{8}(?:,NCT[0-9]{8})*")


class ClinicalTrials:
    """ClinicalTrials.gov; see :class:`~posology.corpus.live.forms.Service`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.url = wire.base_url

    async def begin(self, asked: Asked) -> Begun:
        """Count what matches; given studies are not counted."""
        if asked.trials:
            state = CursorState(
                query=",".join(asked.trials[: asked.limit]),
                left=min(asked.limit, len(asked.trials)),
            )
            return Begun(query=None, found=len(asked.trials), state=state)

        async def search(query: str) -> Begun:
            form = {"query.term": query, "fields": "NCTId", "pageSize": "1", "countTotal": "true"}
            found = await self._wire.get("studies", _count, **form)
            state = CursorState(query=query, left=asked.limit) if found else None
            return Begun(query=query, found=found, state=state)

        return await first_enough(asked.queries, search)

    async def page(self, state: State) -> Page:
        """Return the page at a token."""
        assert isinstance(state, CursorState)
        given = _GIVEN.fullmatch(state.query) is not None
        form = {
            "filter.ids" if given else "query.term": state.query,
            "format": "json",
            "pageSize": str(min(PAGE, state.left)),
        }
        if not given:
            form["sort"] = "@relevance"
        if state.cursor != _START:
            form["pageToken"] = state.cursor
        return await self._wire.get("studies", lambda body: _page(body, state, given=given), **form)


def _count(body: bytes) -> int:
    try:
        return int(parsed(body)["totalCount"])
    except (KeyError, TypeError, ValueError):
        raise Unusable("no totalCount") from None


def _page(body: bytes, state: CursorState, *, given: bool) -> Page:
    reply = parsed(body)
    found = reply.get("studies")
    if not isinstance(found, list):
        raise Unusable("no studies")
    known = [one for one in found if isinstance(one, dict) and number_of(one)]
    wanted = state.query.split(",") if given else []
    if given and not all(_names(one).intersection(wanted) for one in known):
        raise Unusable("it has a record that was not requested")
    token = reply.get("nextPageToken")
    left = state.left - len(found)
    ended = not found or left <= 0 or not isinstance(token, str) or not token
    got = state.got.union(*map(_names, known)) if given else state.got
    return Page(
        content=body if known else b"",
        suffix=".json",
        records=len(known),
        missing=tuple(one for one in wanted if one not in got) if ended else (),
        state=None
        if ended
        else state.model_copy(update={"cursor": token, "left": left, "got": got}),
    )


def _names(study: dict[str, Any]) -> frozenset[str]:
    """Return a study's number, and those that it had before."""
    naming = ("protocolSection", "identificationModule", "nctIdAliases")
    return frozenset({number_of(study) or "", *texts(study, *naming)})
