"""A stub of Zotero's web and local API on loopback, by its documented forms (version 3)."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

KEY = "sEcReTkEy0123456789abcdef"
USER = "4711"


@dataclass(kw_only=True, slots=True)
class Reply:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None


class ZoteroStub:
    """One library; its items and files may be changed between requests."""

    def __init__(self, library: str = f"users/{USER}", *, local: bool = False) -> None:
        self.library, self.local = library, local
        self.version = 0
        self.items: dict[str, dict[str, Any]] = {}
        self.collections: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes | Path] = {}
        #: keys of files that come in an archive
        self.packed: set[str] = set()
        self.deleted: dict[str, int] = {}
        #: notes that were written, and the tokens of their requests
        self.notes: list[dict[str, Any]] = []
        self.tokens: set[str] = set()
        #: characters of a note that are taken
        self.longest = 100_000
        #: by the number of the request, from 1
        self.faults: dict[int, Reply] = {}
        self.seen: list[str] = []
        #: header Authorization of each request, storage included
        self.keys: list[str | None] = []

    def put(self, key: str, **data: Any) -> None:
        """Add an item, or change it."""
        self.version += 1
        old = self.items.get(key, {"key": key, "itemType": "journalArticle", "collections": []})
        self.items[key] = {**old, **data, "version": self.version}

    def attach(
        self,
        key: str,
        parent: str | None,
        content: bytes | Path,
        kind: str = "application/pdf",
        **data: Any,
    ) -> None:
        """Add an attachment."""
        self.files[key] = content
        given: dict[str, Any] = {
            "itemType": "attachment",
            "contentType": kind,
            "linkMode": "imported_file",
            "filename": "a file.pdf",
        }
        given |= {"parentItem": parent} if parent else {"title": "scan_0001.pdf"}
        self.put(key, **{**given, **data})

    def drop(self, key: str) -> None:
        """Delete an item for good."""
        self.version += 1
        del self.items[key]
        self.deleted[key] = self.version

    def collect(self, key: str, name: str, parent: str | bool = False) -> None:
        """Add a collection."""
        self.version += 1
        self.collections[key] = {"key": key, "name": name, "parentCollection": parent}

    def answer(self, path: str, form: dict[str, str], headers: dict[str, str]) -> Reply:
        """Return the reply to a request."""
        self.seen.append(path.partition(self.library)[2] or path)
        self.keys.append(headers.get("authorization"))
        if fault := self.faults.pop(len(self.seen), None):
            return fault
        if path.startswith("/storage/"):
            return self._stored(path.rpartition("/")[2])
        if path == "/api/":
            return Reply(body={})
        if not self.local and headers.get("authorization") != f"Bearer {KEY}":
            return Reply(status=403, body="Invalid key")
        if path.endswith("/keys/current"):
            return Reply(body={"userID": int(USER), "key": KEY})
        at = f"/api/{self.library}" if self.local else f"/{self.library}"
        if self.local and "users" in self.library:
            at = "/api/users/0"
        if not path.startswith(at):
            return Reply(status=404, body="Not found")
        return self._library(path.removeprefix(at), form, headers)

    def written(self, path: str, body: Any, headers: dict[str, str]) -> Reply:
        """Return the reply to a request to write items."""
        self.seen.append("POST " + path.partition(self.library)[2])
        if fault := self.faults.pop(len(self.seen), None):
            return fault
        if headers.get("authorization") != f"Bearer {KEY}" or path != f"/{self.library}/items":
            return Reply(status=403, body="Forbidden")
        if (token := headers["zotero-write-token"]) in self.tokens:
            return Reply(status=412, body="Write token already used")
        assert len(token) == 32
        if len(body[0]["note"]) > self.longest:
            failed = {"code": 413, "message": "Note is too long"}
            return self._ok({"success": {}, "unchanged": {}, "failed": {"0": failed}})
        self.tokens.add(token)
        self.notes += body
        return self._ok({"success": {"0": "NOTE0001"}, "unchanged": {}, "failed": {}})

    def _library(self, path: str, form: dict[str, str], headers: dict[str, str]) -> Reply:
        if headers.get("if-modified-since-version") == str(self.version):
            return Reply(status=304)
        since = int(form.get("since", "0"))
        if path == "/items":
            assert form.get("itemType") == "-note" or form["limit"] == "1"
            rows = [
                {"key": one["key"], "version": one["version"], "data": one, "meta": {}, "links": {}}
                for one in self.items.values()
                if one["version"] > since
                and one["itemType"] != "note"
                and (form.get("includeTrashed") == "1" or not one.get("deleted"))
            ]
            return self._page(rows, form)
        if path == "/collections":
            return self._page([{"data": one} for one in self.collections.values()], form)
        if path == "/deleted":
            gone = [key for key, at in self.deleted.items() if at > since]
            return self._ok({"collections": [], "items": gone, "searches": [], "tags": []})
        key = path.split("/")[2]
        if path == f"/items/{key}/file" and key in self.files:
            content = self.files[key]
            where = content.as_uri() if isinstance(content, Path) else f"/storage/{key}"
            packed = {"Zotero-File-Compressed": "Yes"} if key in self.packed else {}
            return Reply(status=302, headers={"Location": where, **packed})
        return Reply(status=404, body="Not found")

    def _page(self, rows: list[Any], form: dict[str, str]) -> Reply:
        start, limit = int(form.get("start", "0")), int(form.get("limit", "25"))
        assert limit <= 100
        reply = self._ok(rows[start : start + limit])
        reply.headers["Total-Results"] = str(len(rows))
        return reply

    def _ok(self, body: Any) -> Reply:
        return Reply(headers={"Last-Modified-Version": str(self.version)}, body=body)

    def _stored(self, key: str) -> Reply:
        content = self.files[key]
        assert isinstance(content, bytes)
        if key in self.packed:
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w") as archive:
                archive.writestr("other.css", b"x")
                archive.writestr("a file.pdf", content)
            content = out.getvalue()
        return Reply(body=content)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Listen during the block; yields the address of the API."""
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                self._reply(stub.answer(parts.path, dict(parse_qsl(parts.query)), self._named()))

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                self._reply(stub.written(self.path, json.loads(content), self._named()))

            def _named(self) -> dict[str, str]:
                return {name.lower(): value for name, value in self.headers.items()}

            def _reply(self, reply: Reply) -> None:
                body = b"" if reply.body is None else reply.body
                if not isinstance(body, bytes):
                    body = json.dumps(body).encode()
                self.send_response(reply.status)
                for name, value in {**reply.headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            yield f"http://127.0.0.1:{server.server_address[1]}{'/api' if self.local else ''}"
            server.shutdown()
            thread.join()
