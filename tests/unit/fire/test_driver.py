"""Parts of the driver that decide what a run can show."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from evals.fire.actors import REMEMBERED, Work
from evals.fire.checker import load
from evals.fire.drill import Page
from evals.fire.journal import Journal, last_number
from evals.fire.memory import slope
from evals.fire.piece import tenants
from evals.fire.schedule import WEATHERS, WEIGHTS, Sparing, blows
from evals.fire.ways import Reply, Ways
from evals.fire.world.corpus import document
from evals.fire.world.disks import Disk
from evals.fire.world.provider import FATES, Weather
from evals.fire.world.stack import options
from orchestrator.stack.options import API
from orchestrator.stack.supervisor import RestartPolicy
from posology.errors import ProviderError, ProviderOverloaded, RateLimited
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.providers.replies import reader
from posology.testing.provider.responses import respond
from posology.testing.provider.steps import Recorded
from posology.types import Completion, Usage

ROOT = Path(__file__).resolve().parents[3]


def test_a_seed_gives_the_same_blows_again() -> None:
    assert blows("7-1", 3600.0, 4.0) == blows("7-1", 3600.0, 4.0)
    assert blows("7-1", 3600.0, 4.0) != blows("7-2", 3600.0, 4.0)


def test_an_hour_has_every_blow_in_order_of_time() -> None:
    found = blows("1-1", 3600.0, 4.0)
    assert {blow.deed for blow in found} == set(WEIGHTS)
    assert {blow.weather for blow in found} == set(WEATHERS)
    assert [blow.due for blow in found] == sorted(blow.due for blow in found)


def test_the_provider_knows_every_weather() -> None:
    for shares in WEATHERS.values():
        assert set(shares) <= set(FATES)
        assert sum(shares.values()) <= 1


@pytest.mark.parametrize(
    ("fate", "played", "billed", "kind", "usage"),
    [
        ("zero usage", "reply of zeros", True, Completion, None),
        ("no usage", "reply", True, Completion, None),
        ("429 within", "error 429 within", False, RateLimited, Usage()),
        ("502 within", "error 502 within", False, ProviderOverloaded, None),
    ],
)
def test_the_provider_s_fates_reach_the_product_as_unknown_or_free(
    fate: str, played: str, billed: bool, kind: type[Any], usage: Usage | None
) -> None:
    """What it billed is charged at its bound where the reply does not tell, and what it refused is not."""
    weather = Weather(seed=1)
    weather.shares = {fate: 1.0}
    asked = {"model": "m", "messages": [{"role": "user", "content": "Does it work?"}]}
    step = weather(Recorded(path="/v1/chat/completions", headers={}, json=asked))
    response = respond(step, provider="openai", asked=asked, request_id="r")
    assert (response.code, response.played, response.finished) == (200, played, billed)
    adapter = OpenAIAdapter(api_key="none", base_url="http://127.0.0.1:9/v1")
    reply = reader.Reply(body=json.loads(response.body), request_id="r", latency=None)
    try:
        found: Any = adapter.read(reply, "openai:m")
    except ProviderError as error:
        found = error
    assert (type(found), found.usage) == (kind, usage)


def test_every_page_of_the_drill_is_a_section_of_the_runbook() -> None:
    text = (ROOT / "docs" / "how-to" / "runbook.md").read_text(encoding="utf-8")
    assert {page.value for page in Page} <= set(re.findall(r"^## (.+)$", text, re.MULTILINE))


def test_kills_stay_below_the_limit_of_the_supervisor() -> None:
    policy, sparing = RestartPolicy(), Sparing()
    # ten a second, for ten minutes
    kills = [at for at in (n / 10 for n in range(6_000)) if sparing.may_kill(at)]
    assert len(kills) > 20
    for first in kills:
        assert sum(first <= at <= first + policy.within for at in kills) < policy.ends - 1


def test_records_of_pieces_have_one_growing_number(tmp_path: Path) -> None:
    for piece in (1, 2):
        journal = Journal(tmp_path / f"records-{piece:04d}.jsonl", first=last_number(tmp_path) + 1)
        journal.write("request", tenant="acme")
        journal.write("reply", to=1)
        journal.close()
    with (tmp_path / "records-0002.jsonl").open("a") as file:
        # the process ended here
        file.write(json.dumps({"n": 5})[:-1])
    assert [record["n"] for record in load(tmp_path).records] == [1, 2, 3, 4]
    assert last_number(tmp_path) == 4


def test_no_sentence_is_in_two_documents_or_at_the_same_place_of_the_next_revision() -> None:
    texts = {(n, r): document(n, r).text for n in range(120) for r in range(1, 5)}
    sentences = [(s, n) for (n, _), text in texts.items() for s in set(text.split(". "))]
    where: dict[str, set[int]] = {}
    for sentence, number in sentences:
        where.setdefault(sentence.rstrip("."), set()).add(number)
    assert all(len(numbers) == 1 for numbers in where.values())
    for number in range(120):
        first, second = texts[number, 1], texts[number, 2]
        assert first[:60] != second[:60]


def test_a_slope_is_that_of_least_squares_with_its_error() -> None:
    points = [(float(n), 2.0 * n + (-1) ** n) for n in range(100)]
    line = slope("worker rss", points)
    assert line.slope / 3600 == pytest.approx(2.0, abs=0.01)
    # the residuals are 1: 1 / sqrt(sum of squared distances of times)
    assert line.error / 3600 == pytest.approx((100 / 98 / 83_325) ** 0.5, rel=0.01)
    assert (line.samples, line.span) == (100, 99.0)


def test_wandering_memory_has_no_sure_slope() -> None:
    # steps of 5 s for two hours, each of which forgets a fiftieth of what it was away from its mean
    chance, away, points = random.Random(3), 0.0, list[tuple[float, float]]()
    for step in range(1_440):
        away = 0.98 * away + chance.gauss(0, 1)
        points.append((5.0 * step, 100 + away))
    line = slope("worker rss", points)
    assert abs(line.slope) < 3 * line.error
    assert (
        abs(slope("worker rss", [(x, y + x / 100) for x, y in points]).slope - 36) < 3 * line.error
    )


def test_the_first_worker_alone_runs_the_version_before(tmp_path: Path) -> None:
    given = {"folder": "stack", "redis_url": "", "workers": 2, "concurrency": 1, "port": 0, "index": "",
             "overrides": {}, "worker_overrides": {}, "uploads": True, "before": str(tmp_path), "wholly_before": False}  # fmt: skip
    command = options(given).worker_argv[:5]
    assert command[-1] == "{number}"
    assert options(given).api_argv == API
    shown = "import os; print(os.environ.get('PYTHONPATH'), os.getcwd())"

    def run(number: str) -> str:
        argv = [*command[:-1], number, sys.executable, "-c", shown]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    assert run("1") == f"{tmp_path} {tmp_path}"
    assert run("2") == f"{os.environ.get('PYTHONPATH')} {Path.cwd()}"
    whole = options({**given, "wholly_before": True})
    assert whole.worker_argv[:5] == whole.api_argv[:5] == (*command[:-1], "1")


def test_a_slow_disk_lets_writes_pass_in_turn_and_is_whole_in_the_end(tmp_path: Path) -> None:
    told: list[str] = []
    thrice = threading.Event()

    class Heard(Disk):
        def stall(self) -> None:
            told.append("stall")

        def flow(self) -> None:
            told.append("flow")
            if told.count("flow") == 3:
                thrice.set()

    disk = Heard(tmp_path)
    disk.slow()
    assert thrice.wait(30)
    disk.hasten()
    assert told == ["stall", "flow"] * (len(told) // 2)
    assert len(told) >= 6


class _Ended(Ways):
    """A service whose jobs and batches have all ended."""

    async def http(self, verb: str, path: str, **more: Any) -> Reply:
        name = path.split("/")[3]
        if path.endswith("/rows?limit=50"):
            rows = [{"job": f"job_{name}{n}", "state": "succeeded"} for n in range(REMEMBERED)]
            return Reply(status=200, body={"rows": rows, "next": None})
        return Reply(status=200, body={"over": True, "state": "succeeded", "result": None})


def test_a_steady_tenant_reads_its_batches_to_the_end_and_remembers_the_latest_jobs(
    tmp_path: Path,
) -> None:
    async def settle() -> Work:
        journal = Journal(tmp_path / "records-0001.jsonl", first=1)
        ways = _Ended(journal, tenant="ample", key="key", urls=["http://127.0.0.1"], environment={})
        over = asyncio.Event()
        work = Work(tenants(1)[0], ways, journal, "1-1", over, asyncio.Event(), steady=True)
        work.jobs = {f"job_old{n}": "running" for n in range(5)}
        work.batches = {"batch_1"}
        assert await work.settle()
        work.forget()
        await ways.close()
        journal.close()
        return work

    work = asyncio.run(settle())
    assert not work.batches
    assert list(work.jobs) == [f"job_batch_1{n}" for n in range(REMEMBERED)]
