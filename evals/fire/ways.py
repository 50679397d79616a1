"""Ways to the service: HTTP, OpenAI's protocol, the tools for assistants, and the command line. All is recorded."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from evals.fire.journal import Journal

#: words of tenants, as the provider of the run knows them
WORD = re.compile(r"\bword[0-9a-f]{12}\b")
_JOB = re.compile(r'"(job_[0-9a-f]+)"')
#: fields of a job's reply that are not recorded: what they hold is compared by the result's digest, or is in the ledger
_LEFT_OUT = frozenset({"spending", "request", "decision", "progress", "feedback", "question"})
_SHOWN = ("status", "answer", "choice", "refusal", "index", "strategy")
#: seconds for a reply
_TIMEOUT = 90.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A reply as a client sees it."""

    #: HTTP status, or the exit status of a command; ``None``: none came
    status: int | None
    #: decoded; ``None``: none came, or it is not JSON
    body: Any
    #: seconds to wait, by ``Retry-After``
    wait: float = 0.0


NONE = Reply(status=None, body=None)


class Ways:
    """One tenant's ways.

    Args:
        journal: takes every request and reply.
        tenant: name.
        key: API key.
        urls: of the APIs; each request goes to the next one.
        environment: of commands.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        tenant: str,
        key: str,
        urls: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        self._journal, self.tenant, self._key = journal, tenant, key
        self._urls = itertools.cycle(urls)
        self._environment = environment
        #: jobs that a reply has named, also one about an error
        self.jobs: set[str] = set()
        self._headers = {"Authorization": f"Bearer {key}"}
        self._http = httpx2.AsyncClient(timeout=_TIMEOUT, headers=self._headers)

    def _next(self, path: str) -> str:
        return f"{next(self._urls)}{path}"

    async def close(self) -> None:
        """Close connections."""
        await self._http.aclose()

    async def http(
        self,
        verb: str,
        path: str,
        *,
        body: Any = None,
        content: bytes | None = None,
        kind: str = "application/json",
        key: str | None = None,
        way: str = "http",
        **more: Any,
    ) -> Reply:
        """Send a request. ``more`` is recorded with it."""
        headers = {} if key is None else {"Idempotency-Key": key}
        if body is not None:
            content = json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = kind
        shown = body if body is not None else content and f"{len(content)} bytes"
        place = self._asked(way, key, verb=verb, path=path, body=shown, **more)
        try:
            reply = await self._http.request(
                verb, self._next(path), content=content, headers=headers
            )
        except (httpx2.HTTPError, OSError) as error:
            return self._none(place, error)
        wait = reply.headers.get("retry-after", "0")
        return self._told(place, reply.status_code, reply.text, wait=float(wait or 0))

    async def events(self, job: str) -> Reply:
        """Read the events of a job to their end; a cut stream is continued. Returns the last state, if it has ended."""
        after: str | None = None
        state: str | None = None
        for _ in range(20):
            headers = {} if after is None else {"Last-Event-ID": after}
            place = self._asked("http", None, verb="GET", path=f"/v1/jobs/{job}/events", events_of=job, after=after)  # fmt: skip
            events: list[Any] = []
            raw = ""
            status: int | None = None
            try:
                async with self._http.stream(
                    "GET", self._next(f"/v1/jobs/{job}/events"), headers=headers
                ) as reply:
                    status = reply.status_code
                    async for line in reply.aiter_lines():
                        raw += line
                        if line.startswith("data: ") and status == 200:
                            events.append(json.loads(line.removeprefix("data: ")))
                            after = events[-1]["id"]
            except (httpx2.HTTPError, OSError):
                status = None
            states = [event["data"]["state"] for event in events if event["type"] == "state"]
            state = states[-1] if states else state
            kept = [{"type": e["type"], "data": {"state": e["data"].get("state")}} for e in events]
            self._journal.write(
                "reply", to=place, status=status, body={"events": kept}, words=_words(raw)
            )
            if status in (200, 204, 404) and (status != 200 or state in _OVER):
                break
            await asyncio.sleep(0.5)
        return Reply(status=200, body=state)

    async def tool(self, name: str, arguments: dict[str, Any], *, key: str | None = None) -> Reply:
        """Call a tool as an assistant does."""
        place = self._asked("mcp", key, path=name, body=arguments)
        try:
            async with (
                httpx2.AsyncClient(headers=self._headers, timeout=_TIMEOUT) as http,
                Client(streamable_http_client(self._next("/mcp"), http_client=http)) as client,
            ):
                result = await client.call_tool(name, arguments)
        except Exception as error:  # noqa: BLE001 - the protocol's client wraps what went wrong in groups of its own
            return self._none(place, error)
        said = {"meta": result.meta, "result": result.structured_content, "error": result.is_error}
        job = (result.meta or {}).get("posology/job")
        body = said if job is None else {"job": job, **said, "state": None}
        if job is not None and not result.is_error:
            body["state"] = "succeeded"
        return self._told(place, 200, json.dumps(body, default=str))

    async def command(self, *arguments: str, key: str | None = None, **more: Any) -> Reply:
        """Run a command with ``--json``."""
        place = self._asked("cli", key, path=" ".join(arguments), **more)
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("posology")), *arguments, "--tenant", self.tenant, "--json",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, stdin=asyncio.subprocess.DEVNULL,
            env={**os.environ, **self._environment},
        )  # fmt: skip
        out, _ = await process.communicate()
        return self._told(place, process.returncode, out.decode())

    def _asked(self, way: str, key: str | None, **fields: Any) -> int:
        more = {} if key is None else {"key": key}
        return self._journal.write("request", way=way, tenant=self.tenant, **more, **fields)

    def _none(self, place: int, error: BaseException) -> Reply:
        self._journal.write("reply", to=place, status=None, error=repr(error)[:200], body=None, words=[])  # fmt: skip
        return NONE

    def _told(self, place: int, status: int | None, text: str, *, wait: float = 0.0) -> Reply:
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        self.jobs.update(_JOB.findall(text))
        shown = _shown(body) if body is not None else text[:300]
        self._journal.write("reply", to=place, status=status, body=shown, words=_words(text))
        return Reply(status=status, body=body, wait=wait)


_OVER = frozenset({"succeeded", "failed", "cancelled", "expired"})


def _words(text: str) -> list[str]:
    return sorted(set(WORD.findall(text)))


def _shown(node: Any) -> Any:
    """Return a reply without what would fill the disk."""
    if isinstance(node, dict):
        kept = {k: _shown(v) for k, v in node.items() if k not in _LEFT_OUT}
        if isinstance(node.get("result"), dict) and "evidence" in node["result"]:
            kept["result"] = _answer(node["result"])
        return kept
    if isinstance(node, list):
        return [_shown(value) for value in node]
    return node


def _answer(result: dict[str, Any]) -> dict[str, Any]:
    """Return what the checker reads of an answer, and a digest of all of it but its spending.

    A lost call that is reported late corrects what an answer cost, also after the answer was read.
    """
    text = json.dumps({k: v for k, v in result.items() if k != "spending"}, sort_keys=True)
    quotes = [
        {"passage": {"id": one["passage"]["id"]}, **{k: one[k] for k in ("start", "end", "quote")}}
        for one in result["evidence"]
    ]
    shown = {name: result.get(name) for name in _SHOWN}
    return {**shown, "evidence": quotes, "sha256": hashlib.sha256(text.encode()).hexdigest()}
