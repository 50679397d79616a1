"""Files that are added to the index of a service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio

from posology.client.wire import Base, read
from posology.errors import BadFile
from posology.published.ingests import IngestOutput, IngestPage

#: bytes that are sent at once
_PIECE = 1024 * 1024
#: seconds between two looks at an ingest
_PAUSE = 1.0
#: seconds of silence that an upload bears: it may wait for another one of the tenant
_SILENCE = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pieces:
    """The bytes of a file, once for each attempt."""

    path: Path

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with await anyio.open_file(self.path, "rb") as file:
            while piece := await file.read(_PIECE):
                yield piece


class Uploads(Base):
    """Adds files to the index of a service, and watches their ingests."""

    async def upload(self, path: str | Path, *, name: str | None = None) -> IngestOutput:
        """Send a file to be ingested. A file that waits already is not ingested twice.

        Args:
            path: a file of any format that `posology ingest` reads.
            name: name for the service; its suffix tells the format. ``None``: that of the file.

        Raises:
            BadFile: the file cannot be read, is empty, or is of no known format.
            InvalidQuery: the service does not take the name.
            IngestNotAllowed: the tenant may not add literature, or the service takes no uploads.
        """
        file = Path(path)
        try:
            size = (await anyio.Path(file).stat()).st_size
            async with await anyio.open_file(file, "rb"):
                pass
        except OSError as error:
            raise BadFile(error.strerror or str(error), path=str(file)) from None
        reply = await self._wire.request(
            "POST",
            "/v1/index/files",
            repeatable=True,
            params={"name": file.name if name is None else name},
            content=_Pieces(path=file),
            timeout=max(self._timeout, _SILENCE),
            headers={"Content-Type": "application/octet-stream", "Content-Length": str(size)},
        )
        return read(IngestOutput, reply.content)

    async def fetch(
        self,
        query: str | None = None,
        *,
        question: str | None = None,
        pmids: Sequence[str] = (),
        links: str | None = None,
        trials: Sequence[str] = (),
        service: str = "pubmed",
        max_records: int = 100,
        full_text: bool = False,
        wider: bool = False,
        added_since: date | str | None = None,
    ) -> IngestOutput:
        """Let the service fetch literature into its index. A fetch that waits already is not made twice.

        Args:
            query: query in the language of the literature service.
            question: question instead, which becomes a query by a rule.
            pmids: PubMed ids instead.
            links: with ``pmids``, ``related`` or ``cited_by``: articles to fetch in their place.
            trials: registration numbers of ClinicalTrials.gov instead.
            service: ``pubmed``, ``europepmc`` or ``clinicaltrials``.
            max_records: maximum number of records.
            full_text: whether free full texts are looked for, too.
            wider: whether wider queries of the question are sent until ``max_records`` are there.
            added_since: a quarter of ``max_records`` is reserved for what the service has added since this day, a date or
                ``YYYY-MM-DD``; ``None``: none is.

        Raises:
            InvalidQuery: a field is wrong, or not one of query, question, ids and numbers is given.
            IngestNotAllowed: the tenant may not add literature, or the service takes none.
        """
        asked: dict[str, Any] = {"query": query, "question": question, "pmids": list(pmids)}
        asked |= {"service": service, "links": links, "trials": list(trials), "wider": wider}
        if added_since is not None:
            asked["added_since"] = str(added_since)
        reply = await self._wire.request(
            "POST",
            "/v1/index/fetches",
            repeatable=True,
            json={**asked, "max_records": max_records, "full_text": full_text},
        )
        return read(IngestOutput, reply.content)

    async def ingest(self, ingest: str) -> IngestOutput:
        """Return the ingest of an uploaded file as it is now.

        Args:
            ingest: its id.

        Raises:
            IngestNotFound: there is none of that id, or its record has expired.
        """
        return await self._ingest("GET", ingest)

    async def ingests(self) -> tuple[IngestOutput, ...]:
        """Return the ingests whose records are kept, newest first."""
        reply = await self._wire.request("GET", "/v1/index/ingests", repeatable=True)
        return read(IngestPage, reply.content).ingests

    async def cancel_ingest(self, ingest: str) -> IngestOutput:
        """Cancel an ingest, and return it as it was. Records that were written before stay in the index.

        Args:
            ingest: its id.

        Raises:
            IngestNotFound: there is none of that id, or its record has expired.
        """
        return await self._ingest("DELETE", ingest)

    async def wait_ingest(self, ingest: str) -> IngestOutput:
        """Return the ingest of an uploaded file when it has ended: succeeded, failed or cancelled.

        Args:
            ingest: its id.

        Raises:
            IngestNotFound: there is none of that id, or its record has expired.
        """
        while not (found := await self.ingest(ingest)).over:  # noqa: ASYNC110 - of another process
            await anyio.sleep(_PAUSE)
        return found

    async def _ingest(self, method: str, ingest: str) -> IngestOutput:
        path = f"/v1/index/ingests/{quote(ingest, safe='')}"
        reply = await self._wire.request(method, path, repeatable=True)
        return read(IngestOutput, reply.content)
