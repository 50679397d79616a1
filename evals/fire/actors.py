"""Tenants at work: users who ask in every way, repeat lost requests, change their minds, and look again later."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from evals.fire.journal import Journal
from evals.fire.ways import NONE, Reply, Ways
from evals.fire.world.corpus import COUNT, Document, document, question

#: states that end a job
_OVER = frozenset({"succeeded", "failed", "cancelled", "expired"})
#: seconds that a job may take
DEADLINE = 90
_FORMS = ("free", "yes_no", "yes_no_maybe")
#: share of the questions that are searched for a second time after a refusal
_SEARCHING = 0.4
#: ended jobs that a tenant of a steady run remembers, and documents of which it uploads revisions
REMEMBERED, _REVISED = 300, 8
#: seconds between two looks at what has not ended, in a steady run
_SETTLE = 3.0
#: looks at a watch, until which its question is answered or has failed
_LOOKS = 40
#: mean seconds between two deeds of a user, and those in a steady run
_PAUSE, _STEADY_PAUSE = 0.25, 1.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Tenant:
    """A tenant of a run."""

    name: str
    #: stands in all that it says, and in nothing else
    word: str
    #: options of ``posology tenants create``
    limits: tuple[str, ...]
    #: users at work at the same time
    users: int = 3
    #: weights of what its users do
    weights: dict[str, int] = field(
        default_factory=lambda: {
            "ask": 40, "twice": 10, "partitions": 6, "chat": 10, "tool": 4, "cancel": 8, "batch": 4,
            "lane": 3, "upload": 3, "again": 8, "feedback": 4, "retry": 3, "command": 1, "estimate": 1,
            "ask on": 6, "watch": 2, "quote": 3,
        }
    )  # fmt: skip


class Work:
    """A tenant's users.

    Args:
        tenant: whose.
        ways: to the service.
        journal: takes the documents that they hand over.
        seed: of what they do.
        over: set when no more work begins.
        progress: is set when a job has ended.
        steady: whether what ended is read to its end and forgotten, and uploads are revisions of the same few documents.
    """

    def __init__(
        self,
        tenant: Tenant,
        ways: Ways,
        journal: Journal,
        seed: str,
        over: asyncio.Event,
        progress: asyncio.Event,
        *,
        steady: bool = False,
    ) -> None:
        self.tenant, self.ways, self._journal, self._over = tenant, ways, journal, over
        self._progress, self._steady = progress, steady
        self._draw = random.Random(f"{seed}:{tenant.name}")
        self._seed = seed
        self._numbers = 0
        #: last known state of every job, and batches that were accepted
        self.jobs: dict[str, str] = {}
        self.batches: set[str] = set()
        #: files that were accepted, and whose ingest has not ended
        self.ingests: set[str] = set()
        #: ``(version, passage)`` of quotes that were looked at
        self._seen: set[tuple[str, str]] = set()

    @property
    def ended(self) -> int:
        """Number of jobs that have ended, as far as was seen."""
        return sum(state in _OVER for state in self.jobs.values())

    async def run(self) -> None:
        """Work until the end is set, and finish what was begun."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self.tenant.users):
                group.create_task(self._user())
            if self._steady:
                group.create_task(self._follow())

    async def settle(self) -> bool:
        """Look at everything that has not ended; return whether there is nothing of that."""
        over = True
        for job in self.ways.jobs:
            self.jobs.setdefault(job, "unknown")
        for batch in list(self.batches):
            reply = await self.ways.http("GET", f"/v1/batches/{batch}")
            ended = reply.status == 200 and reply.body["over"]
            over &= ended
            if ended and self._steady and await self.rows(batch):
                self.batches.remove(batch)
        for job, state in list(self.jobs.items()):
            if state not in _OVER:
                over &= await self.look(job) in _OVER
        for name in list(self.ingests):
            reply = await self.ways.http("GET", f"/v1/index/ingests/{name}")
            if reply.status == 200 and reply.body["state"] in _OVER:
                self.ingests.remove(name)
            else:
                over = False
        return over

    async def rows(self, batch: str) -> bool:
        """Read the rows of a batch; return whether all were shown."""
        after = 0
        while True:
            path = f"/v1/batches/{batch}/rows?limit=50" + (f"&after={after}" if after else "")
            reply = await self.ways.http("GET", path, rows_of=batch)
            if reply.status != 200:
                return False
            for row in reply.body["rows"]:
                if row["job"]:
                    self.jobs[row["job"]] = row["state"]
            if reply.body["next"] is None:
                return True
            after = reply.body["next"]

    def forget(self) -> None:
        """Forget the oldest jobs that have ended: the service removes them when their retention is over."""
        ended = [job for job, state in self.jobs.items() if state in _OVER]
        for job in ended[:-REMEMBERED]:
            del self.jobs[job]
            self.ways.jobs.discard(job)

    async def _follow(self) -> None:
        """Follow everything to its end."""
        while not self._over.is_set():
            await self.settle()
            self.forget()
            await asyncio.sleep(_SETTLE)

    async def _user(self) -> None:
        deeds: dict[str, Callable[[], Awaitable[None]]] = {
            "ask": self._ask, "twice": self._twice, "partitions": self._partitions, "chat": self._chat,
            "tool": self._tool, "cancel": self._cancel, "batch": self._batch, "lane": self._lane,
            "upload": self._upload, "again": self._again, "feedback": self._feedback, "retry": self._retry,
            "command": self._command, "estimate": self._estimate, "ask on": self._ask_on, "watch": self._watch,
            "quote": self._quote,
        }  # fmt: skip
        names, weights = zip(*self.tenant.weights.items(), strict=True)
        pause = _STEADY_PAUSE if self._steady else _PAUSE
        while not self._over.is_set():
            await deeds[self._draw.choices(names, weights)[0]]()
            await asyncio.sleep(self._draw.expovariate(1 / pause))

    def _question(self) -> tuple[str, str]:
        """A new question and an idempotency key."""
        self._numbers += 1
        number = self._numbers
        return question(
            self._draw, self.tenant.word, number
        ), f"{self._seed}-{self.tenant.word}-{number}"

    def _body(self, text: str, **more: object) -> dict[str, object]:
        form = self._draw.choice(_FORMS)
        if "strategy" not in more and self._draw.random() < _SEARCHING:
            more["policy"] = "router:escalate=search"
        return {"question": text, "form": form, "k": 4, "deadline_seconds": DEADLINE, **more}

    async def _sure(self, send: Callable[[], Awaitable[Reply]], tries: int = 12) -> Reply:
        """Repeat a request until it is answered for good, as a client with an idempotency key does."""
        reply = NONE
        for count in range(tries):
            reply = await send()
            if reply.status is not None and reply.status not in (429, 500, 502, 503, 504):
                break
            await asyncio.sleep(min(5.0, reply.wait or 0.2 * 2**count))
        return reply

    async def submit(self, body: dict[str, object], key: str, *, wait: int = 0) -> str | None:
        """Submit a question, and return the job; ``None``: it was refused."""
        path = f"/v1/jobs?wait={wait}" if wait else "/v1/jobs"
        reply = await self._sure(lambda: self.ways.http("POST", path, body=body, key=key))
        if reply.status not in (200, 202):
            return None
        self.jobs[reply.body["id"]] = reply.body["state"]
        return str(reply.body["id"])

    async def look(self, job: str) -> str | None:
        """Read a job, and look at the passages of its quotes; return its state."""
        reply = await self._sure(lambda: self.ways.http("GET", f"/v1/jobs/{job}"))
        if reply.status != 200:
            return None
        if reply.body["state"] in _OVER and self.jobs.get(job) not in _OVER:
            self._progress.set()
        self.jobs[job] = reply.body["state"]
        answer = reply.body["result"]
        for quote in (answer or {}).get("evidence", ()):
            version, name = answer["index"], quote["passage"]["id"]
            if (version, name) not in self._seen:
                self._seen.add((version, name))
                path = f"/v1/passages/{name}?version={version.rpartition('@')[2]}"
                await self._sure(lambda p=path, v=version: self.ways.http("GET", p, passage_of=v))  # type: ignore[misc]
        return self.jobs[job]

    async def _to_the_end(self, job: str | None) -> None:
        if job is None:
            return
        await self.ways.events(job)
        await self.look(job)

    async def _ask(self) -> None:
        text, key = self._question()
        if self._draw.random() < 0.5:
            job = await self.submit(self._body(text), key, wait=20)
            if job is not None and self.jobs[job] in _OVER:
                await self.look(job)
                return
        else:
            job = await self.submit(self._body(text), key)
        await self._to_the_end(job)

    async def _twice(self) -> None:
        """The same request at once, from two connections."""
        text, key = self._question()
        body = self._body(text)
        jobs = await asyncio.gather(self.submit(body, key), self.submit(body, key))
        await self._to_the_end(jobs[0] or jobs[1])

    async def _partitions(self) -> None:
        text, key = self._question()
        body = self._body(text, strategy="briefcontext", k=6, partition_size=2)
        await self._to_the_end(await self.submit(body, key))

    async def _chat(self) -> None:
        text, key = self._question()
        await self._talk([{"role": "user", "content": text}], key)

    async def _ask_on(self) -> None:
        """Ask a question that needs the one before, of a job or of a chat that sends its earlier turns."""
        text, key = self._question()
        on = f"And in children? Reference {self.tenant.word}, case {self._numbers}."
        ended = [job for job, state in self.jobs.items() if state == "succeeded"]
        if ended and self._draw.random() < 0.5:
            body = self._body(on, parent=self._draw.choice(ended))
            await self._to_the_end(await self.submit(body, key))
        else:
            turns = ((text, "user"), ("It lowers the risk.", "assistant"), (on, "user"))
            await self._talk([{"role": role, "content": said} for said, role in turns], key)

    async def _talk(self, messages: list[dict[str, str]], key: str) -> None:
        body = {"model": "posology", "messages": messages, "posology": {"k": 4}}
        path = "/v1/chat/completions"
        reply = await self._sure(
            lambda: self.ways.http("POST", path, body=body, key=key, way="openai"), tries=4
        )
        if reply.status == 200:
            await self._to_the_end(reply.body["id"])

    async def _tool(self) -> None:
        text, key = self._question()
        reply = await self.ways.tool("ask", {"question": text, "k": 4, "idempotency_key": key})
        if isinstance(reply.body, dict) and reply.body.get("job"):
            await self._to_the_end(reply.body["job"])

    async def _cancel(self) -> None:
        text, key = self._question()
        job = await self.submit(self._body(text), key)
        if job is None:
            return
        await asyncio.sleep(self._draw.expovariate(2.0))
        await self._sure(lambda: self.ways.http("DELETE", f"/v1/jobs/{job}"))
        await self._to_the_end(job)

    async def _batch(self, tier: str = "standard") -> None:
        rows = [self._question()[0] for _ in range(self._draw.randint(3, 8))]
        _, key = self._question()
        lines = "".join(f'{{"id": {n}, "question": "{text}"}}\n' for n, text in enumerate(rows))
        deadline = DEADLINE if tier == "standard" else 5 * DEADLINE
        path = f"/v1/batches?tier={tier}&k=4&deadline_seconds={deadline}"
        kind = "application/x-ndjson"
        reply = await self._sure(
            lambda: self.ways.http("POST", path, content=lines.encode(), kind=kind, key=key)
        )
        if reply.status in (200, 202):
            self.batches.add(reply.body["id"])
            if self._draw.random() < 0.2:
                name = reply.body["id"]
                await self._sure(lambda: self.ways.http("DELETE", f"/v1/batches/{name}"))

    async def _lane(self) -> None:
        await self._batch("batch")

    async def _upload(self) -> None:
        self._numbers += 1
        number, revision = self._numbers, 1
        if self._steady:
            number, revision = number % _REVISED, number
        one = document(1000 + number, revision)
        name = f"up:{self.tenant.name}-{self._seed}-{number}"
        mine = Document(id=name, title=one.title, text=one.text)
        self._journal.write("document", id=mine.id, text=mine.text)
        path = f"/v1/index/files?name={self.tenant.name}-{self._numbers}.jsonl"
        kind = "application/octet-stream"
        content = mine.line.encode() + b"\n"
        send = lambda: self.ways.http("POST", path, content=content, kind=kind)  # noqa: E731
        reply = await self._sure(send, tries=3)
        if reply.status in (200, 202):
            self.ingests.add(reply.body["id"])

    async def _watch(self) -> None:
        """Watch a question until its first answer, and end the watch."""
        text, key = self._question()
        body = self._body(text) | {"every": "month", "max_cost_usd": 0.05}
        reply = await self._sure(lambda: self.ways.http("POST", "/v1/watches", body=body, key=key))
        if reply.status not in (200, 201):
            return
        path = f"/v1/watches/{reply.body['id']}"
        for _ in range(_LOOKS):
            reply = await self._sure(lambda: self.ways.http("GET", path))
            if reply.status == 200 and reply.body["asked"]:
                break
            await asyncio.sleep(_SETTLE)
        # whatever asks after the end of the run would be in no record
        await self._sure(lambda: self.ways.http("DELETE", path), tries=40)

    async def _quote(self) -> None:
        """Look for a sentence of a document, in the version of now."""
        one = document(self._draw.randrange(COUNT), 1)
        body = {"quote": self._draw.choice(one.text.split(". "))}
        await self._sure(lambda: self.ways.http("POST", "/v1/quotes", body=body))

    async def _again(self) -> None:
        """Look at a job of before."""
        if self.jobs:
            await self.look(self._draw.choice(list(self.jobs)))

    async def _feedback(self) -> None:
        if ended := [job for job, state in self.jobs.items() if state == "succeeded"]:
            job = self._draw.choice(ended)
            body = {"score": 0.5, "comment": self.tenant.word}
            await self._sure(lambda: self.ways.http("POST", f"/v1/jobs/{job}/feedback", body=body))

    async def _retry(self) -> None:
        if failed := [job for job, state in self.jobs.items() if state in ("failed", "expired")]:
            job = self._draw.choice(failed)
            await self._sure(lambda: self.ways.http("POST", f"/v1/jobs/{job}/retry", retries=[job]))
            await self._to_the_end(job)

    async def _command(self) -> None:
        text, key = self._question()
        reply = await self.ways.command("submit", text, "--key", key, "--k", "4", key=key)
        if reply.status == 0 and isinstance(reply.body, dict):
            await self._to_the_end(reply.body.get("id"))

    async def _estimate(self) -> None:
        text, _ = self._question()
        await self.ways.http("POST", "/v1/estimate", body={"question": text})


async def drain(work: Work, patience: float) -> bool:
    """Wait until every job and batch of a tenant has ended, and read them all a last time.

    Args:
        work: of the tenant.
        patience: seconds; jobs that have not ended then are left to the checker.

    Returns:
        Whether all have ended.
    """
    over = False
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while True:
                if over := await work.settle():
                    break
                await asyncio.sleep(1.0)
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            for batch in work.batches:
                await work.rows(batch)
            for job in list(work.jobs):
                await work.look(job)
    return over
