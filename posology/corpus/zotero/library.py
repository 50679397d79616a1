"""One library of Zotero, over its local API or its web API (https://www.zotero.org/support/dev/web_api/v3)."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urljoin, urlsplit

import httpx2

from posology.corpus.live.wire import MAX_BODY
from posology.corpus.zotero.wire import SERVICE, Patient
from posology.errors import ConfigurationError, FetchFailed
from posology.network.clients import blocking_client
from posology.network.failures import reason

#: items a page, Zotero's maximum
PAGE = 100
#: times that a list is read again because the library changed meanwhile
_TRIES = 3
_TIMEOUT = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """Items of a library, and its version at that time."""

    items: tuple[Mapping[str, Any], ...]
    version: int
    #: keys of items that were deleted for good
    deleted: tuple[str, ...] = ()


class Library:
    """A library; blocking.

    Args:
        url: address of the API.
        local: whether it is the local API, which needs no key, and names files of this machine.
        group: id of the group; ``None``: the user's own library.
        key: API key of the web API.

    Raises:
        ConfigurationError: the web API's own library is asked for without a key.
        FetchFailed: no reply came, or the key is refused.
    """

    def __init__(
        self,
        url: str,
        *,
        local: bool,
        group: str | None = None,
        key: str | None = None,
    ) -> None:
        self.url, self.local = url.rstrip("/"), local
        # a key must reach no other host: of redirects, only that of a file is followed, without it
        self._http = blocking_client(url, Patient, timeout=_TIMEOUT)
        self._key = key
        #: path of the library below the address
        self.path = f"groups/{group}" if group else "users/0"
        if not local and not group:
            try:
                self.path = f"users/{self._user()}"
            except BaseException:
                self._http.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def unchanged(self, since: int) -> bool:
        """Return whether the library still has a version."""
        reply = self._get(
            f"{self.path}/items", {"limit": "1"}, headers={"If-Modified-Since-Version": str(since)}
        )
        return reply.status_code == httpx2.codes.NOT_MODIFIED

    def changes(self, since: int = 0) -> Changes:
        """Return the items that changed after a version, of version 0 all; notes are not asked for.

        Raises:
            FetchFailed: no usable reply came, or the library changes faster than it is read.
        """
        asked = {"itemType": "-note"}
        if since:
            asked |= {"since": str(since), "includeTrashed": "1"}
        for _ in range(_TRIES):
            items: list[Mapping[str, Any]] = []
            versions = set()
            for rows, version in self._pages("items", asked):
                items += rows
                versions.add(version)
            deleted: tuple[str, ...] = ()
            if since:
                reply = self._get(f"{self.path}/deleted", {"since": str(since)})
                with _translated(self.url):
                    deleted = tuple(map(str, reply.json()["items"]))
                versions.add(_version(reply))
            # pages that shift while they are read leave items out
            if len(versions) == 1:
                return Changes(items=tuple(items), version=versions.pop(), deleted=deleted)
        raise FetchFailed(
            f"the library of {SERVICE} changed while it was read: try again", service=SERVICE
        )

    def collections(self) -> dict[str, tuple[str, str]]:
        """Return the name of each collection, and the key of the one that it is in (empty: none), by key."""
        with _translated(self.url):
            data = [row["data"] for rows, _ in self._pages("collections", {}) for row in rows]
            return {
                str(one["key"]): (
                    str(one.get("name") or ""),
                    str(one.get("parentCollection") or ""),
                )
                for one in data
            }

    def file(self, key: str, named: str) -> Path | bytes | None:
        """Return an attachment: its path on this machine, or its content; ``None``: Zotero does not have it.

        Args:
            key: of the attachment.
            named: its file name, which is looked for if the file comes in an archive.

        Raises:
            FetchFailed: no usable reply came.
        """
        try:
            reply = self._get(f"{self.path}/items/{key}/file")
        except FetchFailed as error:
            if error.details.get("status") == httpx2.codes.NOT_FOUND:
                return None
            raise
        packed = reply.headers.get("zotero-file-compressed", "").lower() == "yes"
        if reply.is_redirect:
            place = urljoin(str(reply.url), reply.headers["location"])
            parts = urlsplit(place)
            if parts.scheme == "file" and self.local:
                path = Path(unquote(parts.path))
                return path if path.is_file() else None
            own = parts.netloc == urlsplit(self.url).netloc
            if parts.scheme != "https" and not own:
                raise FetchFailed(
                    f"{SERVICE} leads a file to an address that is not https", service=SERVICE
                )
            with (
                _translated(self.url),
                blocking_client(place, Patient, timeout=_TIMEOUT) as storage,
            ):
                reply = storage.get(place)
            if reply.status_code == httpx2.codes.NOT_FOUND:
                return None
            if not reply.is_success:
                raise _refused(reply.status_code)
        return _unpacked(reply.content, named) if packed else reply.content

    def add_note(self, html: str, *, collection: str = "") -> str | None:
        """Add a note, and return its key; ``None``: the same note was added in the last 12 hours, and is not added again.

        Args:
            html: the note.
            collection: key of the collection that it goes into; empty: none.

        Raises:
            FetchFailed: Zotero refused, or gave no usable reply. A request whose reply is lost is safe to repeat.
        """
        note = {
            "itemType": "note",
            "note": html,
            "collections": [collection] if collection else [],
            "tags": [{"tag": "Posology"}],
        }
        # Zotero carries a token out once
        token = hashlib.sha256("\n".join((self.path, collection, html)).encode()).hexdigest()[:32]
        with _translated(self.url):
            reply = self._http.post(
                f"{self.url}/{self.path}/items",
                json=[note],
                headers={**self._headers(), "Zotero-Write-Token": token},
            )
            if reply.status_code == httpx2.codes.PRECONDITION_FAILED:
                return None
            written = self._checked(reply).json()
            if (added := written["success"].get("0")) is not None:
                return str(added)
            refused = written["failed"]["0"]
            why = f"{refused['code']}: {refused['message']}"
        raise FetchFailed(f"{SERVICE} did not take the note ({why})", service=SERVICE)

    def _pages(
        self, what: str, asked: Mapping[str, str]
    ) -> Iterator[tuple[list[Mapping[str, Any]], int]]:
        """Yield the pages of a list, with the library's version at each."""
        start = 0
        while True:
            paged = {**asked, "limit": str(PAGE), "start": str(start)}
            reply = self._get(f"{self.path}/{what}", paged)
            with _translated(self.url):
                rows = reply.json()
                if not isinstance(rows, list) or not all(
                    isinstance(row["data"], dict) for row in rows
                ):
                    # what is no list of objects must not count as an empty library
                    raise TypeError
                total = reply.headers.get("total-results")
                yield rows, _version(reply)
                start += len(rows)
                if not rows or (len(rows) < PAGE if total is None else start >= int(total)):
                    return

    def _user(self) -> str:
        """Return the id of the key's user."""
        if self._key is None:
            raise ConfigurationError(
                f"{SERVICE} does not run on this machine, and no key is set: start {SERVICE} 7 or later with Settings, "
                "Advanced, 'Allow other applications to communicate with Zotero', or set POSOLOGY_ZOTERO_KEY to a key of "
                "zotero.org/settings/keys"
            )
        reply = self._get("keys/current")
        with _translated(self.url):
            return str(int(reply.json()["userID"]))

    def _get(
        self,
        path: str,
        asked: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        sent = {**self._headers(), **(headers or {})}
        with _translated(self.url):
            reply = self._http.get(f"{self.url}/{path}", params=asked, headers=sent)
        return self._checked(reply)

    def _headers(self) -> dict[str, str]:
        known = {"Zotero-API-Version": "3"}
        return known if self._key is None else {**known, "Authorization": f"Bearer {self._key}"}

    @staticmethod
    def _checked(reply: httpx2.Response) -> httpx2.Response:
        if reply.status_code >= httpx2.codes.BAD_REQUEST:
            raise _refused(reply.status_code)
        return reply


def _version(reply: httpx2.Response) -> int:
    return int(reply.headers.get("last-modified-version", "0"))


@contextmanager
def _translated(url: str) -> Iterator[None]:
    """Raise errors of HTTP and of a reply's form as ours."""
    try:
        yield
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        # no cause: it holds the request, and that the key
        raise FetchFailed(
            f"{SERVICE} gave no usable reply ({reason(error, url)}): try again later",
            service=SERVICE,
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FetchFailed(
            f"{SERVICE} sent a reply of another form ({type(error).__name__})", service=SERVICE
        ) from None


def _refused(status: int | None) -> FetchFailed:
    why = {
        401: "the key is not valid, or lacks the right to this library: check POSOLOGY_ZOTERO_KEY",
        403: "the key is not valid, or lacks the right to this library: check POSOLOGY_ZOTERO_KEY; of the local API, allow "
        "other applications in Zotero's settings",
        404: "there is no such library, or it has no such object",
        429: "too many requests: try again later",
    }.get(status or 0, "try again later")
    return FetchFailed(
        f"{SERVICE} refused ({status or 'no status'}): {why}", service=SERVICE, status=status
    )


def _unpacked(content: bytes, named: str) -> bytes | None:
    """Return a file of an archive, by its name or else the first."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            names = [one for one in packed.infolist() if not one.is_dir()]
            chosen = next((one for one in names if one.filename == named), next(iter(names), None))
            if chosen is None or chosen.file_size > MAX_BODY:
                return None
            with packed.open(chosen) as file:
                return file.read(MAX_BODY)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError):
        return None
