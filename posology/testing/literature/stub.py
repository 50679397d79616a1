"""The stub: one handler for both services, called in the process or through a socket of its own."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx2

from posology.testing.literature.articles import (
    ARTICLES,
    Article,
    core_result,
    jats,
    pmc_set,
    pubmed_set,
)
from posology.testing.literature.studies import STUDIES

#: what becomes of a request instead of its reply: statuses, a body that ends early, an error within a 200, a list that the
#: history server has forgotten, and another host
Fault = Literal["429", "500", "cut", "error", "gone", "redirect"]
_XML = {"content-type": "text/xml; charset=UTF-8"}
_JSON = {"content-type": "application/json; charset=UTF-8"}
#: what limits a query to records that were added, or changed, since a day
_SINCE = re.compile(
    r' AND (?:\("(.*?)"\[edat\] : "3000"\[edat\]\)|FIRST_IDATE:\[(\S+) TO 3000-01-01\]|'
    r"AREA\[LastUpdatePostDate\]RANGE\[(\S+),MAX\])$"
)
_WORDS = re.compile(r"[\w-]+")
_OPERATORS = frozenset({"and", "hasabstract", "src", "med"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A request that came."""

    #: by the stub's clock, seconds
    at: float
    #: last part of the path
    path: str
    form: Mapping[str, str]
    status: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A response."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: dict(_XML))
    body: bytes = b""


class LiteratureStub:
    """E-utilities below ``/eutils/``, Europe PMC below ``/europepmc/``, and beside them ClinicalTrials.gov and Unpaywall.

    Args:
        articles: what it holds.
        studies: study records of ClinicalTrials.gov.
        faults: by the number of the request, from 1.
        per_second: requests within one second; more are refused with 429. An API key allows ten. ``None``: any number.
        clock: seconds, growing.
        reached: called with each request before it is answered; a test may hold it there.
    """

    def __init__(
        self,
        articles: Sequence[Article] = ARTICLES,
        *,
        studies: Sequence[Mapping[str, Any]] = STUDIES,
        faults: Mapping[int, Fault] | None = None,
        per_second: int | None = 3,
        clock: Callable[[], float] = time.monotonic,
        reached: Callable[[str, Mapping[str, str]], None] = lambda _path, _form: None,
    ) -> None:
        self._articles = {one.pmid: one for one in articles}
        self._studies = {
            one["protocolSection"]["identificationModule"]["nctId"]: one for one in studies
        }
        self._faults = dict(faults or {})
        self._per_second = per_second
        self._clock = clock
        self._reached = reached
        self._lock = threading.Lock()
        self._history: dict[str, list[str]] = {}
        #: all requests, in the order in which they came
        self.seen: list[Seen] = []

    def paths(self, *, status: int = 200) -> list[str]:
        """Return the paths of the requests that were answered with a status."""
        return [one.path for one in self.seen if one.status == status]

    def handle(self, path: str, form: Mapping[str, str]) -> Reply:
        """Answer a request."""
        self._reached(path, form)
        with self._lock:
            now = self._clock()
            number = len(self.seen) + 1
            fault = self._faults.get(number)
            recent = sum(one.at > now - 1.0 for one in self.seen if one.status != 429)
            allowed = 10 if form.get("api_key") else self._per_second
            if self._per_second is not None and allowed is not None and recent >= allowed:
                fault = "429"
            reply = self._faulty(fault, form) if fault else self._answer(path, form)
            if fault == "cut":
                reply = self._answer(path, form)
                reply = Reply(headers=reply.headers, body=reply.body[: len(reply.body) * 2 // 3])
            name = path.rstrip("/").rpartition("/")[2]
            self.seen.append(Seen(at=now, path=name, form=dict(form), status=reply.status))
            return reply

    def transport(self) -> httpx2.MockTransport:
        """Return a transport that answers within this process."""

        def answer(request: httpx2.Request) -> httpx2.Response:
            form = dict(parse_qsl(request.content.decode(), keep_blank_values=True))
            form |= dict(request.url.params)
            reply = self.handle(request.url.path, form)
            return httpx2.Response(reply.status, headers=dict(reply.headers), content=reply.body)

        return httpx2.MockTransport(answer)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Listen on a free port of the loopback interface during the block; yields the address."""
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send(dict(parse_qsl(urlsplit(self.path).query)))

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", "0"))
                self._send(dict(parse_qsl(self.rfile.read(length).decode())))

            def _send(self, form: dict[str, str]) -> None:
                reply = stub.handle(urlsplit(self.path).path, form)
                try:
                    self.send_response(reply.status)
                    for name, value in reply.headers.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(reply.body)))
                    self.end_headers()
                    self.wfile.write(reply.body)
                except (BrokenPipeError, ConnectionResetError):
                    # a client that was killed
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _faulty(self, fault: Fault, form: Mapping[str, str]) -> Reply:
        match fault:
            case "429":
                body = {"error": "API rate limit exceeded", "count": "4", "limit": "3"}
                return Reply(
                    status=429,
                    headers={**_JSON, "retry-after": "2"},
                    body=json.dumps(body).encode(),
                )
            case "500":
                return Reply(status=500, body=b"<html><body>Internal Server Error</body></html>")
            case "redirect":
                return Reply(status=302, headers={"location": "https://elsewhere.example/eutils/"})
            case "gone":
                self._history.clear()
                return _failed("Unable to obtain query #1")
            case "error" if form.get("retmode") == "json":
                return _json({"esearchresult": {"ERROR": "Search Backend failed: timed out"}})
            case "error" if form.get("format") == "json":
                return _json({"errCode": 500, "errMsg": "the index does not answer"})
            case _:
                return _failed("Database is not available")

    def _answer(self, path: str, form: Mapping[str, str]) -> Reply:
        name = path.rstrip("/").rpartition("/")[2]
        match name:
            case _ if "/unpaywall/" in path:
                return self._unpaywall(path.partition("/unpaywall/")[2])
            case "studies":
                return self._listed(form)
            case "elink.fcgi":
                return self._elink(form)
            case "esearch.fcgi":
                return self._esearch(form)
            case "epost.fcgi":
                return self._epost(form)
            case "efetch.fcgi" if form.get("db") == "pmc":
                pmcids = {f"PMC{one}" for one in form["id"].split(",")}
                found = [one for one in self._articles.values() if one.pmcid in pmcids]
                return Reply(body=pmc_set(found).encode())
            case "efetch.fcgi":
                return self._efetch(form)
            case "searchPOST":
                return self._europepmc(form)
            case "fullTextXML":
                return self._full_text(path.split("/")[-2])
        return Reply(status=404, headers=_JSON, body=b'{"error": "no such path"}')

    def _found(self, query: str) -> list[str]:
        if cited := re.findall(r"CITES:(\d+)_MED", query):
            return [one.pmid for one in self._articles.values() if set(cited) & set(one.cites)]
        if ids := re.findall(r"EXT_ID:(\d+)", query):
            return [one for one in ids if one in self._articles]
        query, day = _limited(query)
        query, _, without = query.partition(" NOT ")
        words = [w for w in map(str.lower, _WORDS.findall(query)) if w not in _OPERATORS]
        left_out = set(self._found(without)) if without else set()
        return [
            one.pmid
            for one in self._articles.values()
            if words and one.matches(words) and one.pmid not in left_out and one.added >= day
        ]

    def _esearch(self, form: Mapping[str, str]) -> Reply:
        ids = self._found(form.get("term", ""))
        shown = ids[: int(form.get("retmax", "20"))]
        result: dict[str, Any] = {
            "count": str(len(ids)),
            "retmax": str(len(shown)),
            "retstart": "0",
            "querykey": "1",
            "webenv": self._remember(ids),
            "idlist": shown,
            "translationset": [],
            "querytranslation": f"{form.get('term', '')}[All Fields]",
        }
        if not ids:
            result["errorlist"] = {"phrasesnotfound": [form.get("term", "")], "fieldsnotfound": []}
            result["warninglist"] = {"phrasesignored": [], "outputmessages": ["No items found."]}
        return _json({"header": {"type": "esearch", "version": "0.3"}, "esearchresult": result})

    def _elink(self, form: Mapping[str, str]) -> Reply:
        ids, name = form["id"].split(","), form["linkname"]
        linked = [
            one.pmid
            for one in self._articles.values()
            if (set(ids) & {one.pmid, *one.cites} if name == "pubmed_pubmed_citedin" else ids)
        ]
        if name == "pubmed_pubmed_citedin":
            linked = [one for one in linked if one not in ids]
        found = [{"dbto": "pubmed", "linkname": name, "links": linked}] if linked else []
        sets = {"dbfrom": "pubmed", "ids": ids, **({"linksetdbs": found} if found else {})}
        return _json({"header": {"type": "elink", "version": "0.3"}, "linksets": [sets]})

    def _listed(self, form: Mapping[str, str]) -> Reply:
        if ids := form.get("filter.ids"):
            studies = [self._studies[one] for one in ids.split(",") if one in self._studies]
        else:
            query, day = _limited(form["query.term"])
            words = [w for w in map(str.lower, _WORDS.findall(query)) if w != "and"]
            studies = [
                one
                for one in self._studies.values()
                if words
                and all(word in json.dumps(one).lower() for word in words)
                and _changed(one) >= day
            ]
        start, size = int(form.get("pageToken", "0")), int(form.get("pageSize", "10"))
        page: dict[str, Any] = {"studies": studies[start : start + size]}
        if form.get("countTotal") == "true":
            page = {"totalCount": len(studies), **page}
        if start + size < len(studies):
            page["nextPageToken"] = str(start + size)
        return _json(page)

    def _unpaywall(self, doi: str) -> Reply:
        doi = unquote(doi)
        known = {f"10.9999/stub.{one.pmid}": one for one in self._articles.values()}
        if doi not in known:
            return Reply(
                status=404, headers=_JSON, body=b'{"HTTP_status_code": 404, "error": true}'
            )
        copy = known[doi].copy_at
        place = {"host_type": "repository", "license": "cc-by", "version": "acceptedVersion"}
        best = {**place, "url": copy, "url_for_pdf": copy, "url_for_landing_page": None}
        return _json(
            {"doi": doi, "is_oa": copy is not None, "best_oa_location": best if copy else None}
        )

    def _epost(self, form: Mapping[str, str]) -> Reply:
        env = self._remember(form.get("id", "").split(","))
        body = f"<ePostResult><QueryKey>1</QueryKey><WebEnv>{env}</WebEnv></ePostResult>"
        return Reply(body=f'<?xml version="1.0" encoding="UTF-8" ?>\n{body}'.encode())

    def _efetch(self, form: Mapping[str, str]) -> Reply:
        listed = self._history.get(form.get("WebEnv", ""))
        if listed is None:
            return _failed("Unable to obtain query #1")
        start = int(form.get("retstart", "0"))
        page = listed[start : start + int(form.get("retmax", "20"))]
        found = [self._articles[one] for one in page if one in self._articles]
        return (
            Reply(body=pubmed_set(found).encode())
            if found
            else _failed("Empty result - nothing to do")
        )

    def _remember(self, ids: list[str]) -> str:
        env = f"MCID_{len(self._history) + 1:08x}"
        self._history[env] = ids
        return env

    def _europepmc(self, form: Mapping[str, str]) -> Reply:
        ids = self._found(form.get("query", ""))
        cursor = form.get("cursorMark", "*")
        start = 0 if cursor == "*" else int(cursor.removeprefix("AoE"))
        size = int(form.get("pageSize", "25"))
        page = ids[start : start + size]
        results = [core_result(self._articles[one]) for one in page]
        if form.get("resultType") == "idlist":
            results = [{"id": one["id"], "source": one["source"]} for one in results]
        following = f"AoE{start + len(page)}" if page else cursor
        return _json(
            {
                "version": "6.9",
                "hitCount": len(ids),
                "nextCursorMark": following,
                "request": {
                    "queryString": form.get("query", ""),
                    "resultType": form.get("resultType"),
                },
                "resultList": {"result": results},
            }
        )

    def _full_text(self, pmcid: str) -> Reply:
        for one in self._articles.values():
            if one.pmcid == pmcid and one.body:
                return Reply(body=jats(one).encode())
        return Reply(status=404, headers=_JSON, body=b"")


def _json(value: object) -> Reply:
    return Reply(headers=_JSON, body=json.dumps(value).encode())


def _failed(reason: str) -> Reply:
    body = f"<eFetchResult><ERROR>{reason}</ERROR></eFetchResult>"
    return Reply(body=f'<?xml version="1.0" encoding="UTF-8" ?>\n{body}'.encode())


def _limited(query: str) -> tuple[str, str]:
    """Return a query without the day that it is limited to, and the day; an empty one: to none."""
    if (found := _SINCE.search(query)) is None:
        return query, ""
    day = next(one for one in found.groups() if one)
    return query[: found.start()], day.replace("/", "-")


def _changed(study: Mapping[str, Any]) -> str:
    """Return the day on which a study was posted, or else its results."""
    status = study["protocolSection"]["statusModule"]
    posted = status.get("resultsFirstPostDateStruct", status["studyFirstPostDateStruct"])
    return str(posted["date"])
