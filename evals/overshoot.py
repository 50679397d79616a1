"""How far is a budget overrun when everybody calls at once? ``python -m evals.overshoot``.

64 calls start together against a cap of $0.45, at a stub of a provider that replies after 0.7 s, and whose own
books are the truth: what it finished times its list price. Four stories:

* ``full``: each reply is as long as ``max_tokens`` allows, so a call costs what it was bounded by. The cap pays 25.
* ``short``: replies are a tenth as long, so that the cap pays for all 64, though not for their bounds.
* ``lost``: as ``full``, but every fourth request is done, billed, and its reply lost with the connection. Each side
  makes up to three attempts at a call, as both do if nobody says otherwise.
* ``long``: prompts of 300,000 tokens to a model with a higher price from 272,000 on. The cap pays 3.

LiteLLM is the published package in an environment of its own (``--env``), by its strongest means:

* ``router``: ``provider_budget_config`` of its Router, spend shared by Redis. It compares what was spent with the
  limit, and reserves nothing.
* ``proxy``: a key with ``max_budget``. The proxy reserves input by its own count, and ``max_tokens``, at the
  deployment's price in a counter in Redis before a call, and puts it right after. ``closed`` adds
  ``fail_closed_budget_enforcement``, the strictest setting: a call whose estimate does not fit is refused. ``again``
  has clients whose call was refused for the budget ask again every half second, as the proxy has no queue, until
  nothing has moved for eight seconds.

The proxy does its books only with a Postgres, through Prisma, whose engine is a binary that is fetched when it first
starts. So that none is needed here, the key comes from its ``custom_auth``, with
``custom_auth_run_common_checks``, and the hook that puts reservations right after a call, which it would start with
the database, is started by its ``callbacks``. Without that hook every call would stay charged at its estimate. One
worker, Redis beside it, no retries but its router's: what several workers and a slow Redis add is not shown.
The stub bills no more input than LiteLLM counts, so that its estimate is a bound, but in ``long``, where its
reservation passes over the step that its price list holds.

Ours: the real stack over the OpenAI adapter, the cap as the tenant's limit in the same Redis. A call for which there
is no room but for what others hold waits; one that the money does not pay for is refused.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import redis

from orchestrator.stack.ports import free_port
from orchestrator.stack.redis_server import find_server
from posology.budget.bounds.calls import CallBound
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.redis import RedisLedger
from posology.budget.prices.book import packaged
from posology.budget.tenants.store import TenantStore
from posology.errors import BudgetError, ProviderError
from posology.llm.accounting import Account
from posology.llm.openai_adapter import OpenAIAdapter
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.query import make_query
from posology.store.connection import connect
from posology.testing import Cut, Recorded, Reply, Step, StubProvider
from posology.types import Call, Limits, Message, PromptId, Role, Scope, Stage, Usage

CALLS = 64
CAP = Decimal("0.45")
#: seconds until a reply
LATENCY = 0.7
VERSION = "1.109.1"
#: at a call, on both sides: what LiteLLM's router makes if nobody says otherwise
ATTEMPTS = 3
#: requirements whose lowest version some indexes do not have: certificates, which nothing on this machine looks at,
#: and the migrations of a database that is not used
LOOSENED = ("certifi", "litellm-proxy-extras")
#: seconds
INSTALL, START, PATIENCE, STEP, QUIET = 900.0, 120.0, 60.0, 0.5, 8.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """What the calls ask for, and what becomes of them."""

    name: str
    model: str = "gpt-4o"
    #: of the prompt, as LiteLLM counts at least that many
    word: str = " data"
    input: int = 1_000
    output: int = 1_500
    max_tokens: int = 1_500
    #: every so many requests are done and billed, and their replies lost; 0: none
    lost: int = 0

    @property
    def cost(self) -> Decimal:
        """Dollars that one request is billed at."""
        billed = packaged().cost(f"openai:{self.model}", self.usage)
        assert billed is not None
        return billed

    @property
    def usage(self) -> Usage:
        """Tokens of one request."""
        return Usage(input=self.input, output=self.output)

    @property
    def prompt(self) -> str:
        """The one message of a call."""
        return self.word * self.input


STORIES = (
    Story(name="full"),
    Story(name="short", output=150),
    Story(name="lost", lost=4),
    Story(name="long", model="gpt-5.6-luna", word=" a", input=300_000, output=100, max_tokens=100),
)


class Books:
    """A provider's: what it was asked, and what it bills."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset(STORIES[0])

    def reset(self, story: Story) -> None:
        """Begin anew."""
        with self._lock:
            self._story = story
            self._numbers = itertools.count(1)
            self.requests = 0

    def answer(self, _request: Recorded) -> Step:
        """Do the work, and enter it."""
        with self._lock:
            number = next(self._numbers)
            self.requests = number
            story = self._story
        reply = Reply(text="Yes.", usage=story.usage, latency=LATENCY)
        return Cut(of=reply) if story.lost and number % story.lost == 0 else reply


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of one run."""

    answered: int
    refused: int
    #: calls that failed for another reason
    failed: int
    #: dollars that the side itself counts as spent; ``None``: unknown
    account: Decimal | None
    seconds: float


@contextmanager
def own_redis() -> Iterator[int]:
    """A Redis that keeps nothing; its port."""
    port = free_port("127.0.0.1")
    with tempfile.TemporaryDirectory() as folder:
        command = [str(find_server(os.environ.get("PATH"))), "--port", str(port), "--dir", folder,
                   "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]  # fmt: skip
        with stopped(subprocess.Popen(command, stdout=subprocess.DEVNULL)):
            with redis.Redis(port=port) as client:
                wait_until(lambda: bool(client.ping()), redis.ConnectionError)
            yield port


@contextmanager
def stopped(process: subprocess.Popen[Any]) -> Iterator[subprocess.Popen[Any]]:
    """Stop a process at the end of the block."""
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(ready: Callable[[], bool], *errors: type[Exception], seconds: float = START) -> None:
    """Ask until it is so."""
    until = time.monotonic() + seconds
    while True:
        try:
            if ready():
                return
        except errors:
            pass
        if time.monotonic() > until:
            raise TimeoutError("a process that was started does not answer")
        time.sleep(0.1)


AUTH = f"""
from litellm.proxy._types import UserAPIKeyAuth
from litellm.proxy.hooks.proxy_track_cost_callback import ProxyDBLogger

books = ProxyDBLogger()


async def a_key(request, api_key: str) -> UserAPIKeyAuth:
    return UserAPIKeyAuth(api_key=api_key, max_budget={CAP}, spend=0.0)
"""
ROUTER = f"""
import asyncio, json, sys, time
from litellm import Router
asked = json.load(sys.stdin)

async def main():
    router = Router(
        model_list=[{{"model_name": "m", "litellm_params": asked["params"]}}],
        provider_budget_config={{"openai": {{"budget_limit": {CAP}, "time_period": "1d"}}}},
        redis_host="127.0.0.1", redis_port=asked["redis"],
    )
    said = {{"answered": 0, "refused": 0, "failed": 0}}

    async def one():
        message = {{"role": "user", "content": asked["prompt"]}}
        try:
            await router.acompletion("m", messages=[message], max_tokens=asked["max_tokens"])
            said["answered"] += 1
        except Exception as error:
            said["refused" if "udget" in str(error) else "failed"] += 1

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range({CALLS})))
    said["seconds"] = time.perf_counter() - started
    # its spend goes to Redis once a second
    await asyncio.sleep(3)
    print("said:" + json.dumps(said), flush=True)

asyncio.run(main())
"""
REQUIREMENTS = f"""
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement
for line in requires("litellm"):
    wanted = Requirement(line)
    if wanted.marker is None or wanted.marker.evaluate({{"extra": "proxy"}}):
        extras = f"[{{','.join(wanted.extras)}}]" if wanted.extras else ""
        print(wanted.name + extras + ("" if wanted.name in {LOOSENED!r} else str(wanted.specifier)))
"""


class NoLiteLLM(Exception):
    """There is no environment with LiteLLM, and none can be made."""


class LiteLLM:
    """The published package, in an environment of its own.

    Args:
        folder: of the environment; made when it is not there.

    Raises:
        NoLiteLLM: it cannot be made; naming the last words of pip.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / f"litellm-{VERSION}"
        self.python = self.folder / "bin" / "python"
        done = self.folder / "installed"
        if not done.exists():
            print(f"installing LiteLLM {VERSION} into {self.folder} …", flush=True)
            done.write_text(self._install())
        #: how it was installed
        self.note = done.read_text()

    def _install(self) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._call([sys.executable, "-m", "venv", str(self.folder)])
        try:
            self._pip(f"litellm[proxy]=={VERSION}")
        except NoLiteLLM as error:
            refused = str(error)
        else:
            return "as published"
        self._pip("--no-deps", f"litellm=={VERSION}")
        wanted = self._call([str(self.python), "-c", REQUIREMENTS]).split("\n")
        self._pip(*(line for line in wanted if line))
        return f"with any version of {' and '.join(LOOSENED)}, since: {refused}"

    def _pip(self, *what: str) -> None:
        self._call(
            [str(self.python), "-m", "pip", "--disable-pip-version-check", "install", "-q", *what]
        )

    def _call(self, command: list[str]) -> str:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=INSTALL
            )
        except subprocess.TimeoutExpired as error:
            raise NoLiteLLM(f"it took longer than {INSTALL:g} s") from error
        if done.returncode:
            last = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            raise NoLiteLLM(last[-1] if last else done.stderr[-300:])
        return done.stdout

    def environment(self, folder: str) -> dict[str, str]:
        """What its processes are given: no key, no proxy, no network."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": folder,
            "PYTHONPATH": folder,
            # prices from the package; nothing is fetched
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_MASTER_KEY": "sk-master",
            "NO_PROXY": "127.0.0.1,localhost",
        }


def deployment(stub: StubProvider, story: Story) -> dict[str, Any]:
    """A model for LiteLLM. Flat prices are given to it; steps it knows of itself."""
    params: dict[str, Any] = {
        "model": f"openai/{story.model}",
        "api_base": stub.openai_url,
        "api_key": "none",
    }
    if story.name == "long":
        return params
    book, model = packaged(), f"openai:{story.model}"
    single = {"input": Usage(input=1), "output": Usage(output=1)}
    return params | {
        f"{kind}_cost_per_token": float(book.cost(model, usage) or 0)
        for kind, usage in single.items()
    }


class ByRouter:
    """LiteLLM's Router with a provider's budget."""

    def __init__(self, package: LiteLLM, port: int) -> None:
        self._package = package
        self._port = port

    def __call__(self, story: Story, stub: StubProvider) -> Outcome:
        """Make the calls from a process of LiteLLM's environment."""
        with redis.Redis(port=self._port, decode_responses=True) as store:
            store.flushall()
            asked = {
                "params": deployment(stub, story),
                "redis": self._port,
                "prompt": story.prompt,
                "max_tokens": story.max_tokens,
            }
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    [str(self._package.python), "-c", ROUTER],
                    input=json.dumps(asked), capture_output=True, text=True, check=False,
                    timeout=START + PATIENCE, env=self._package.environment(folder),
                )  # fmt: skip
            lines = [line for line in done.stdout.splitlines() if line.startswith("said:")]
            if not lines:
                raise RuntimeError(f"LiteLLM's Router ended early: {done.stderr[-2000:]}")
            spent = cast("str | None", store.get("provider_spend:openai:1d"))
        said = json.loads(lines[-1].removeprefix("said:"))
        return Outcome(**said, account=None if spent is None else Decimal(spent))


class ByProxy:
    """LiteLLM's proxy with a key's budget.

    Args:
        url: of the proxy.
        port: of the Redis that it counts in.
        again: whether clients that were refused ask again.
    """

    def __init__(self, url: str, port: int, *, again: bool) -> None:
        self._url = url
        self._port = port
        self._again = again
        self._moved = 0.0

    def __call__(self, story: Story, _stub: StubProvider) -> Outcome:
        """Make the calls with a key that nobody has used before."""
        key = f"sk-{time.time_ns()}"
        started = time.perf_counter()
        ends = asyncio.run(self._calls(story, key))
        seconds = time.perf_counter() - started
        # its books are done after the reply
        time.sleep(3)
        with redis.Redis(port=self._port, decode_responses=True) as store:
            spent = cast(
                "str | None", store.get("spend:key:" + hashlib.sha256(key.encode()).hexdigest())
            )
        return Outcome(
            answered=ends.count("answered"),
            refused=ends.count("refused"),
            failed=ends.count("failed"),
            account=None if spent is None else Decimal(spent),
            seconds=seconds,
        )

    async def _calls(self, story: Story, key: str) -> list[str]:
        self._moved = time.monotonic()
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False, limits=limits) as client:
            return await asyncio.gather(*(self._call(client, story, key) for _ in range(CALLS)))

    async def _call(self, client: httpx2.AsyncClient, story: Story, key: str) -> str:
        message = {"role": "user", "content": story.prompt}
        body = {"model": story.model, "messages": [message], "max_tokens": story.max_tokens}
        while True:
            response = await client.post(
                f"{self._url}/v1/chat/completions",
                headers={"authorization": f"Bearer {key}"},
                json=body,
            )
            if response.status_code == 200 or "budget_exceeded" not in response.text:
                self._moved = time.monotonic()
                return "answered" if response.status_code == 200 else "failed"
            if not self._again or time.monotonic() > self._moved + QUIET:
                return "refused"
            await asyncio.sleep(STEP)


@contextmanager
def proxy(package: LiteLLM, stub: StubProvider, port: int, *, closed: bool) -> Iterator[str]:
    """LiteLLM's proxy as a process; its URL."""
    own = free_port("127.0.0.1")
    models = {story.model: deployment(stub, story) for story in STORIES}
    config = {
        "model_list": [
            {"model_name": name, "litellm_params": params} for name, params in models.items()
        ],
        "litellm_settings": {"telemetry": False, "callbacks": ["overshoot_key.books"]},
        "general_settings": {
            "custom_auth": "overshoot_key.a_key",
            "custom_auth_run_common_checks": True,
            "fail_closed_budget_enforcement": closed,
            "coordination_redis": {"host": "127.0.0.1", "port": port},
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "overshoot_key.py").write_text(AUTH)
        # what is JSON is YAML
        (Path(folder) / "config.yaml").write_text(json.dumps(config))
        with (Path(folder) / "log").open("wb") as log:
            command = [str(package.folder / "bin" / "litellm"), "--config", "config.yaml",
                       "--host", "127.0.0.1", "--port", str(own)]  # fmt: skip
            process = subprocess.Popen(
                command, cwd=folder, env=package.environment(folder), stdout=log, stderr=log
            )
            with stopped(process), httpx2.Client(trust_env=False) as client:
                url = f"http://127.0.0.1:{own}"
                alive = f"{url}/health/liveliness"
                wait_until(lambda: client.get(alive).status_code == 200, httpx2.HTTPError)
                yield url


class Ours:
    """The real stack, with the cap as the tenant's limit.

    Args:
        port: of the Redis that holds the ledger.
    """

    def __init__(self, port: int) -> None:
        self._url = f"redis://127.0.0.1:{port}/0"

    def __call__(self, story: Story, stub: StubProvider) -> Outcome:
        """Make the calls for a tenant that has not spent anything."""
        return asyncio.run(self._calls(story, stub))

    async def _calls(self, story: Story, stub: StubProvider) -> Outcome:
        store = connect(self._url)
        tenant = f"t{time.time_ns()}"
        await TenantStore(store, self._url).create(tenant, Limits(total=CAP))
        ledger = RedisLedger(store, self._url, tenant=tenant)
        adapter = OpenAIAdapter(api_key="none", base_url=stub.openai_url)
        ends = Counter[str]()

        async def one() -> None:
            complete = build(
                adapter,
                # a run of its own, as each question of a user's is
                journal=LedgerJournal(ledger, Account()),
                prices=packaged(),
                bound=CallBound(),
                retry=RetryPolicy(attempts=ATTEMPTS),
            )
            try:
                await complete(call_of(story))
            except BudgetError:
                ends["refused"] += 1
            except ProviderError:
                ends["failed"] += 1
            else:
                ends["answered"] += 1

        started = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(CALLS):
                group.start_soon(one)
        seconds = time.perf_counter() - started
        balances = {balance.scope: balance for balance in await ledger.balances()}
        account = balances[Scope.TOTAL]
        if account.reserved:
            raise RuntimeError(
                f"${account.reserved} are still set aside though nothing is under way"
            )
        await adapter.aclose()
        await store.aclose()
        return Outcome(
            answered=ends["answered"],
            refused=ends["refused"],
            failed=ends["failed"],
            account=account.spent,
            seconds=seconds,
        )


def call_of(story: Story) -> Call:
    """The call as our strategies make them."""
    return Call(
        stage=Stage.ANSWER,
        model=f"openai:{story.model}",
        query=make_query("Does aspirin prevent stroke?"),
        excerpts=(),
        messages=(Message(role=Role.USER, content=story.prompt),),
        prompt=PromptId(name="answer", digest="0" * 16),
        max_tokens=story.max_tokens,
    )


Side = Callable[[Story, StubProvider], Outcome]


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One run, with the truth."""

    story: Story
    side: str
    requests: int
    outcome: Outcome

    @property
    def billed(self) -> Decimal:
        """Dollars by the provider's own books."""
        return self.requests * self.story.cost

    @property
    def overshoot(self) -> Decimal:
        """Dollars beyond the cap."""
        return max(Decimal(0), self.billed - CAP)

    def __str__(self) -> str:
        seen = self.outcome
        account = "?" if seen.account is None else f"{seen.account:.4f}"
        return (
            f"{self.story.name:6} {self.side:22} {self.requests:8} {seen.answered:8} {seen.refused:7} "
            f"{seen.failed:6} {self.billed:9.4f} {account:>9} {self.overshoot:9.4f} "
            f"{self.overshoot / CAP:9.1%} {seen.seconds:7.1f}"
        )


HEAD = (
    f"{'story':6} {'side':22} {'requests':>8} {'answered':>8} {'refused':>7} {'failed':>6} {'billed $':>9} "
    f"{'account $':>9} {'overrun $':>9} {'overrun %':>9} {'seconds':>7}"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What is run, and how often."""

    stories: tuple[Story, ...]
    repeats: int
    sides: frozenset[str]


def measured(name: str, side: Side, stub: StubProvider, books: Books, trial: Trial) -> list[Row]:
    """Every story as often as asked for, a line a run."""
    rows = []
    for story in trial.stories:
        for _ in range(trial.repeats):
            books.reset(story)
            outcome = side(story, stub)
            rows.append(Row(story=story, side=name, requests=books.requests, outcome=outcome))
            print(rows[-1], flush=True)
    return rows


def run(trial: Trial, package: LiteLLM | None) -> list[Row]:
    """Run every side on one stub and one Redis."""
    books = Books()
    rows: list[Row] = []
    print(HEAD)
    with StubProvider(books.answer) as stub, own_redis() as port:
        if package and "router" in trial.sides:
            rows += measured("LiteLLM router", ByRouter(package, port), stub, books, trial)
        for closed in (False, True):
            if package and "proxy" in trial.sides:
                name = "LiteLLM proxy" + " closed" * closed
                with proxy(package, stub, port, closed=closed) as url:
                    for again in (False, True):
                        side = ByProxy(url, port, again=again)
                        rows += measured(name + " again" * again, side, stub, books, trial)
        if "posology" in trial.sides:
            rows += measured("Posology", Ours(port), stub, books, trial)
    return rows


def table(rows: list[Row]) -> str:
    """A line a story and side: what all runs of it have in common, or from the least to the most."""
    lines = [
        "",
        f"{'story':6} {'side':28} {'answered':>9} {'billed $':>15} {'account $':>15} {'overrun':>15}",
    ]
    for _, same in itertools.groupby(rows, key=lambda row: (row.side, row.story.name)):
        runs = list(same)
        accounts = [run.outcome.account for run in runs if run.outcome.account is not None]
        lines.append(
            f"{runs[0].story.name:6} {runs[0].side:28} "
            f"{span([f'{run.outcome.answered}' for run in runs]):>9} "
            f"{span([f'{run.billed:.4f}' for run in runs]):>15} "
            f"{span([f'{account:.4f}' for account in accounts]):>15} "
            f"{span([f'{run.overshoot / CAP:.1%}' for run in runs]):>15}"
        )
    # by story, since that is what sides are compared in
    order = [story.name for story in STORIES]
    return "\n".join(
        [*lines[:2], *sorted(lines[2:], key=lambda line: order.index(line.split()[0]))]
    )


def span(values: list[str]) -> str:
    """One value, or the least and the most of several."""
    known = sorted(set(values), key=lambda text: float(text.rstrip("%")))
    return "?" if not known else "-".join(dict.fromkeys((known[0], known[-1])))


def main() -> None:
    """Print a line a run, and the table; the exit status is 1 when Posology's cap did not hold."""
    parser = argparse.ArgumentParser(
        description="How far a budget is overrun, here and with LiteLLM."
    )
    parser.add_argument(
        "--env", type=Path, default=Path.home() / ".cache" / "posology-evals",
        help="where LiteLLM's environment is, or is made: 0.8 GB",
    )  # fmt: skip
    parser.add_argument("--require", action="store_true", help="fail when LiteLLM cannot be had")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--stories", nargs="+", default=[story.name for story in STORIES])
    parser.add_argument("--sides", nargs="+", default=["router", "proxy", "posology"])
    given = parser.parse_args()
    trial = Trial(
        stories=tuple(story for story in STORIES if story.name in given.stories),
        repeats=given.repeats,
        sides=frozenset(given.sides),
    )
    package = None
    if trial.sides & {"router", "proxy"}:
        try:
            package = LiteLLM(given.env)
        except NoLiteLLM as error:
            print(f"without LiteLLM, which cannot be installed here: {error}")
            if given.require:
                raise SystemExit(1) from None
        else:
            print(f"LiteLLM {VERSION}, {package.note}")
    rows = run(trial, package)
    print(table(rows))
    if any(row.overshoot for row in rows if row.side == "Posology"):
        raise SystemExit("Posology's cap did not hold")


if __name__ == "__main__":
    main()
