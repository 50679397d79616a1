"""LiteLLM as a side of :mod:`evals.overshoot`: its Router and its proxy, from an environment of its own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import httpx2
import redis

from evals.overshoot_calls import CALLS, CAP, START, STORIES, Outcome, Story, stopped, wait_until
from orchestrator.stack.ports import free_port
from posology.budget.prices.book import packaged
from posology.testing import StubProvider
from posology.types import Usage

VERSION = "1.109.1"
#: requirements whose lowest version some indexes do not have: certificates, which nothing on this machine looks at,
#: and the migrations of a database that is not used
LOOSENED = ("certifi", "litellm-proxy-extras")
#: seconds: for the installation; for a call; between the tries of a client that is refused; without movement until it
#: gives up
INSTALL, PATIENCE, STEP, QUIET = 900.0, 60.0, 0.5, 8.0
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
        """Make the calls with a new key."""
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
