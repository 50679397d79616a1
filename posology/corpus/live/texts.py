"""Full texts: of each article the first that a place has free, and else the reason of each place.

PubMed Central and Europe PMC send articles. Unpaywall only knows where copies are: on any host, behind redirects, and without
the article's record. So the address of a copy is shown, and not called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote

from posology.corpus.live.forms import TextService, Wanted
from posology.corpus.live.pubmed import parsed
from posology.corpus.live.wire import Wire, said
from posology.errors import FetchFailed

#: requests a second to Unpaywall, which asks for at most 100,000 a day
PER_SECOND = 3.0
_NOT_FOUND = 404
_ADDRESS = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """Reply of a place about some articles."""

    #: content of a file; ``None``: it has none of them
    content: bytes | None = None
    #: ids of the articles that the file has
    whole: frozenset[str] = frozenset()
    #: reason for each other article, by its id
    why: dict[str, str] = field(default_factory=dict)
    #: addresses of copies elsewhere, by the article's id
    copies: dict[str, str] = field(default_factory=dict)


class TextPlace(Protocol):
    """A place where full texts are looked for."""

    #: name, in reports
    name: str
    #: articles that are looked for at once
    at_once: int

    async def find(self, wanted: Sequence[Wanted]) -> Found:
        """Look for articles.

        Raises:
            FetchFailed: the place gave no usable reply.
        """


class Archive:
    """PubMed Central or Europe PMC.

    Args:
        name: see :class:`TextPlace`.
        service: sends its texts.
        closed: reason for an article that it has without a text.
    """

    def __init__(self, name: str, service: TextService, *, closed: str) -> None:
        self.name = name
        self.at_once = service.texts_at_once
        self._service = service
        self._closed = closed

    async def find(self, wanted: Sequence[Wanted]) -> Found:
        """See :class:`TextPlace`."""
        ids = [one.pmcid for one in wanted if one.pmcid]
        text = await self._service.texts(ids) if ids else None
        sent = () if text is None else text.whole
        whole = frozenset(one.record for one in wanted if one.pmcid in sent)
        return Found(
            content=None if text is None else text.content,
            whole=whole,
            why={
                one.record: self._closed if one.pmcid else "it is not in PubMed Central"
                for one in wanted
                if one.record not in whole
            },
        )


class Unpaywall:
    """Unpaywall, by its API 2.

    Args:
        wire: to its address, with the parameter ``email``; ``None``: no address of a person is configured.
    """

    name = "unpaywall"
    at_once = 1

    def __init__(self, wire: Wire | None) -> None:
        self._wire = wire

    async def find(self, wanted: Sequence[Wanted]) -> Found:
        """See :class:`TextPlace`."""
        (article,) = wanted
        if article.doi is None:
            return Found(why={article.record: "it has no DOI"})
        if self._wire is None:
            return Found(
                why={article.record: "not asked: set POSOLOGY_EMAIL, which Unpaywall needs"}
            )
        try:
            why, address = await self._wire.get(quote(article.doi, safe=""), _copy)
        except FetchFailed as failed:
            if failed.status != _NOT_FOUND:
                raise
            why, address = "it does not know the DOI", None
        copies = {} if address is None else {article.record: address}
        return Found(why={article.record: why}, copies=copies)


def _copy(body: bytes) -> tuple[str, str | None]:
    """Return why Unpaywall's reply brings no text, and the address of a copy."""
    best = parsed(body).get("best_oa_location")
    if not isinstance(best, dict):
        return "no free copy is known", None
    known = (best.get(name) for name in ("url_for_pdf", "url"))
    address = next((one for one in known if isinstance(one, str) and _is_address(one)), None)
    if address is None:
        return "the copy that it knows has no address", None
    facts = ", ".join(said(str(best[name])) for name in ("version", "license") if best.get(name))
    return f"a copy elsewhere is not fetched{f' ({facts})' if facts else ''}", address


def _is_address(text: str) -> bool:
    fits = text.startswith(("https://", "http://")) and len(text) <= _ADDRESS
    return fits and text.isascii() and text.isprintable() and " " not in text


class Search:
    """Looks for articles place by place.

    A place that gives no usable reply is not asked again, unless it is of the service that is fetched from: then the fetch
    ends, and resumes there.

    Args:
        places: in their order.
        needed: name of the place that must reply; ``None``: none.
    """

    def __init__(self, places: Sequence[TextPlace], *, needed: str | None) -> None:
        self._places = places
        self._needed = needed
        self._down: dict[str, str] = {}

    async def find(self, wanted: Sequence[Wanted]) -> list[tuple[str, Found]]:
        """Return the replies of all places about some articles, each with the place's name.

        Raises:
            FetchFailed: the needed place gave no usable reply.
        """
        replies: list[tuple[str, Found]] = []
        left = list(wanted)
        for place in self._places:
            for start in range(0, len(left), place.at_once):
                found = await self._asked(place, left[start : start + place.at_once])
                replies.append((place.name, found))
            whole: set[str] = {record for _, found in replies for record in found.whole}
            left = [one for one in left if one.record not in whole]
        return replies

    async def _asked(self, place: TextPlace, some: Sequence[Wanted]) -> Found:
        if (why := self._down.get(place.name)) is not None:
            return Found(why=dict.fromkeys((one.record for one in some), why))
        try:
            return await place.find(some)
        except FetchFailed as failed:
            if place.name == self._needed:
                raise
            if failed.status is None:
                self._down[place.name] = failed.message
            return Found(why=dict.fromkeys((one.record for one in some), failed.message))
