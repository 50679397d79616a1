"""Estimates on a real index: the command, the API, and beside what the offline reader is charged."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from fastapi import FastAPI
from redis import Redis
from typer.testing import CliRunner, Result

from orchestrator.api.app import create_app
from orchestrator.api.context import Limits
from orchestrator.cli.app import app
from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.models import Models
from orchestrator.question.estimates.costs import make_estimator
from orchestrator.question.estimates.rows import Estimates, read_rows
from orchestrator.question.report import ask_output
from orchestrator.service import make_service, open_connections
from orchestrator.settings import Settings
from posology.corpus.sample import notes_file, questions
from posology.llm.accounting import Account
from posology.published.estimates import EstimateOutput
from posology.store import keys
from strategies import STRATEGIES
from tests.integration.conftest import Serve
from tests.support.commands import Cli, command_line, published
from tests.support.indices import groups, index_of, write_rows
from tests.support.waiting import until

RUNNER = CliRunner()
MODEL = "openai:gpt-4o-mini"
QUESTION = "Does aspirin lower the risk of stroke in adults?"
#: offline calls are billed as if they were another's
SHADOW = f'[shadow]\n"offline:extractive" = "{MODEL}"\n'


@pytest.fixture(scope="module")
def index(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_of(tmp_path_factory.mktemp("estimate-index"), tiny_encoder, groups(9))


@pytest.fixture
def cli(index: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    environment = {"POSOLOGY_INDEX": str(index), "POSOLOGY_EMBEDDER": str(tiny_encoder)}
    return command_line(environment, "estimate")


def rows(path: Path, *found: dict[str, Any] | str) -> str:
    return str(write_rows(path, found))


def estimated(result: Result) -> EstimateOutput:
    published(result, "estimate")
    return EstimateOutput.model_validate_json(result.stdout)


def test_each_question_is_estimated_by_each_strategy_and_bad_rows_are_told(
    cli: Cli, tmp_path: Path
) -> None:
    source = rows(
        tmp_path / "q.jsonl",
        {"id": "a", "question": QUESTION},
        "",
        "{no json",
        {"id": 2, "question": QUESTION, "strategy": "briefcontext", "partition_size": 8},
        {"question": QUESTION, "model": "openai:nobody-knows-it"},
    )
    result = cli(source, "--model", MODEL, "--policy", "affordable", "--json")
    assert result.exit_code == 1, result.stderr
    out = estimated(result)
    assert [(one.row, one.id) for one in out.questions] == [(0, "a"), (2, 2)]
    assert [(bad.row, bad.error.type) for bad in out.bad] == [
        (1, "InvalidQuery"),
        (3, "UnpricedModel"),
    ]
    assert out.bad[0].error.details["line"] == 3
    both, one = out.questions
    assert [s.strategy for s in both.strategies] == list(STRATEGIES)
    assert [s.calls for s in both.strategies] == [1, 1, 4]
    assert [(s.strategy, s.calls) for s in one.strategies] == [("briefcontext", 2)]
    assert (both.decided, one.decided) == ("direct", "briefcontext")
    assert out.decided is not None
    assert out.decided.worst_usd == both.strategies[0].worst_usd + one.strategies[0].worst_usd
    assert out.decided.repeated_usd == out.decided.worst_usd * Settings().attempts
    assert (out.balances, out.accuracy, out.history) == (None, None, 0)
    shown = cli(source, "--model", MODEL)
    assert shown.exit_code == 1
    assert "briefcontext" in shown.stdout
    assert "line 3: the row is not JSON" in shown.stderr


def test_what_is_decided_is_estimated_with_all_that_may_follow(cli: Cli, tmp_path: Path) -> None:
    """A ladder of 2, 4 and 8 passages, and BriefContext in partitions of 3 after it."""
    source = rows(tmp_path / "q.jsonl", {"question": QUESTION})
    given = ("--model", MODEL, "--json", "--policy")
    once, ladder, further = (
        estimated(cli(source, *given, policy)).decided
        for policy in ("affordable", "doubling:escalate=off", "doubling")
    )
    assert once is not None
    assert ladder is not None
    assert further is not None
    assert (once.calls, ladder.calls, further.calls) == (1, 3, 7)
    assert once.worst_usd < ladder.worst_usd < further.worst_usd
    assert ladder.expected_usd < further.expected_usd
    brief = estimated(cli(source, *given, "doubling")).questions[0].strategies[2]
    assert brief.strategy == "briefcontext"
    assert further.worst_usd == ladder.worst_usd + brief.worst_usd
    # a ladder may end with its first call, which shows less than all
    assert further.low_usd == ladder.low_usd < once.low_usd


def test_a_second_search_is_estimated_over_what_it_finds(cli: Cli, tmp_path: Path) -> None:
    source = rows(tmp_path / "q.jsonl", {"question": QUESTION, "k": 2})
    given = ("--model", MODEL, "--json", "--policy")
    ladder, further = (
        estimated(cli(source, *given, policy)).decided
        for policy in ("doubling:escalate=off", "doubling:escalate=search")
    )
    assert ladder is not None
    assert further is not None
    assert further.calls == ladder.calls + 1
    # the best two, and two of the second search
    once = estimated(
        cli(rows(tmp_path / "4.jsonl", {"question": QUESTION, "k": 4}), *given, "affordable")
    )
    assert once.decided is not None
    assert further.worst_usd - ladder.worst_usd > once.decided.worst_usd / 2


def test_a_compressor_is_chosen_by_its_name(cli: Cli, tmp_path: Path) -> None:
    source = rows(tmp_path / "q.jsonl", {"question": QUESTION})
    given = (source, "--model", MODEL, "--json")

    def compressed(*options: str, **env: str) -> tuple[int, Decimal]:
        out = estimated(cli(*given, *options, **env))
        (found,) = [one for one in out.totals if one.strategy == "compressed"]
        return found.calls, found.expected_usd

    plain, half = compressed(), compressed("--compressor", "selective_context_sentence")
    assert plain[0] == half[0] == 1
    # half of the sentences, not a fifth
    assert half[1] > plain[1]
    assert half == compressed(POSOLOGY_COMPRESSOR="selective_context_sentence")
    wrong = cli(*given, "--compressor", "magic")
    assert wrong.exit_code == 3
    assert "leancontext_top" in json.loads(wrong.stdout)["error"]["message"]
    unset = cli(*given, POSOLOGY_COMPRESSOR="magic")
    assert unset.exit_code == 4
    assert "POSOLOGY_COMPRESSOR" in json.loads(unset.stdout)["error"]["message"]


def test_a_model_without_a_price_is_refused_before_anything_is_read(
    cli: Cli, tmp_path: Path
) -> None:
    source = rows(tmp_path / "q.jsonl", {"question": QUESTION})
    result = cli(source, "--model", "openai:nobody-knows-it", "--json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["error"]["type"] == "UnpricedModel"


def test_a_free_model_costs_nothing_and_says_so(cli: Cli, tmp_path: Path) -> None:
    source = rows(tmp_path / "q.jsonl", {"question": QUESTION})
    out = estimated(cli(source, "--json"))
    assert out.questions[0].free
    assert {total.worst_usd for total in out.totals} == {Decimal(0)}
    assert "offline:extractive: free" in cli(source).stdout
    prices = tmp_path / "prices.toml"
    prices.write_text(SHADOW, encoding="utf-8")
    shadowed = estimated(cli(source, "--json", POSOLOGY_PRICES=str(prices)))
    assert not shadowed.questions[0].free
    assert all(total.expected_usd > 0 for total in shadowed.totals)


def test_what_a_tenant_has_left_and_what_its_calls_took(
    cli: Cli, tmp_path: Path, redis_url: str, tenant: str
) -> None:
    source = rows(tmp_path / "q.jsonl", {"question": QUESTION})
    environment = {"POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_TENANT": tenant}
    given = ("--model", MODEL, "--policy", "affordable")
    before = estimated(cli(source, *given, "--json", **environment))
    assert before.balances is not None
    assert all(scope.worst_fits and scope.cap_usd is None for scope in before.balances)
    assert before.decided is not None
    expected, worst = before.decided.expected_usd, before.decided.worst_usd
    today = f"{keys.prefix(tenant)}money:by:{datetime.now(UTC):%Y-%m-%d}"
    with Redis.from_url(redis_url) as redis:
        redis.hset(
            f"{keys.prefix(tenant)}tenant",
            mapping={"day": int(expected * 10**9) - 1, "month": int(worst * 10**9) - 1},
        )
    limited = estimated(cli(source, *given, "--json", **environment))
    assert limited.balances is not None
    fits = {str(s.scope): (s.expected_fits, s.worst_fits) for s in limited.balances}
    assert fits == {"day": (False, False), "month": (True, False), "total": (True, True)}
    assert (
        "covers the expected cost but not the maximum" in cli(source, *given, **environment).stdout
    )
    with Redis.from_url(redis_url) as redis:
        label = f"answer|direct|{MODEL}"
        redis.hset(today, mapping={f"attempts|{label}": 1_000_001, f"unknown|{label}": 1,
                                   f"output|{label}": 700_000_000, f"input|{label}": 5})  # fmt: skip
        # says nothing of the replies of another model
        other = "answer|direct|offline:extractive"
        redis.hset(today, mapping={f"attempts|{other}": 7, f"output|{other}": 70})
    told = estimated(cli(source, *given, "--json", **environment))
    assert told.history == 1_000_000
    assert told.decided is not None
    assert (before.decided.output_tokens, told.decided.output_tokens) == (200, 700)


def test_a_store_that_is_away_is_told_and_the_estimate_goes_on(cli: Cli, tmp_path: Path) -> None:
    source = rows(tmp_path / "q.jsonl", {"question": QUESTION})
    result = cli(source, "--json", POSOLOGY_REDIS_URL="redis://127.0.0.1:1/0")
    assert result.exit_code == 0, result.stderr
    assert estimated(result).balances is None
    assert "unreachable" in result.stderr


def answer(index: Path, encoder: Path, prices: Path, strategy: str) -> str:
    """The row that a batch would write for the question, answered by the offline reader."""
    environment = {
        "POSOLOGY_INDEX": str(index),
        "POSOLOGY_EMBEDDER": str(encoder),
        "POSOLOGY_PRICES": str(prices),
    }
    given = ["ask", QUESTION, "--strategy", strategy, "--json"]
    result = RUNNER.invoke(app, given, env=environment)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_answers_are_put_beside_the_estimate(
    cli: Cli, index: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(SHADOW, encoding="utf-8")
    asked = [{"id": name, "question": QUESTION, "strategy": name} for name in STRATEGIES]
    source = rows(tmp_path / "q.jsonl", *asked, {"id": "x", "question": "Is it?"})
    found: list[dict[str, Any]] = [
        {"row": i, "id": name, "job": "j", "state": "succeeded", "error": None,
         "result": json.loads(answer(index, tiny_encoder, prices, name))}
        for i, name in enumerate(STRATEGIES)
    ]  # fmt: skip
    failed = {
        "row": len(STRATEGIES),
        "id": "x",
        "job": None,
        "state": "failed",
        "result": None,
        "error": None,
    }
    answers = rows(tmp_path / "a.jsonl", *found, failed)
    environment = {"POSOLOGY_PRICES": str(prices)}
    out = estimated(cli(source, "--against", answers, "--json", **environment))
    assert out.accuracy is not None
    assert (out.accuracy.unanswered, out.accuracy.other_index) == (1, 0)
    assert [one.strategy for one in out.accuracy.strategies] == list(STRATEGIES)
    for one, row in zip(out.accuracy.strategies, found, strict=True):
        assert one.actual_usd == Decimal(row["result"]["spending"]["cost_usd"]) > 0
        assert (one.over_worst, one.within, one.questions) == (0, 1.0, 1)
    assert (
        "100.0% between minimum and maximum"
        in cli(source, "--against", answers, **environment).stdout
    )
    others = rows(
        tmp_path / "b.jsonl", {**found[1], "row": 0, "id": "direct"}, {**found[0], "row": 7}
    )
    refused = cli(source, "--against", others, "--json", **environment)
    assert refused.exit_code == 3
    assert json.loads(refused.stdout)["error"]["type"] == "BadFile"
    no_rows = cli(source, "--against", source, "--json", **environment)
    assert json.loads(no_rows.stdout)["error"]["details"]["line"] == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.anyio
async def test_sample_questions_cost_what_was_estimated(tmp_path: Path) -> None:
    # every fifth: ``evals.money.estimates`` compares all
    prices = tmp_path / "prices.toml"
    prices.write_text(SHADOW, encoding="utf-8")
    settings = Settings.model_validate({"POSOLOGY_PRICES": str(prices)})
    place = str(tmp_path / "index")
    with notes_file() as notes:
        await anyio.to_thread.run_sync(lambda: run_ingest([notes], settings, Target(place=place)))
    lines = [
        json.dumps({"question": q.query.text, "form": q.query.form,
                    "options": {o.label: o.text for o in q.query.options} or None})
        for q in questions()[::5]
    ]  # fmt: skip
    models = Models(None)
    async with open_connections(settings, models) as connections:
        service = await make_service(settings, models, connections, place)
        estimates = Estimates(
            service=service,
            estimator=make_estimator(settings, connections),
            settings=settings,
        )
        found = await estimates(list(read_rows(lines, {}, settings)))
        assert len(found) == 8
        for name in STRATEGIES:
            expected = actual = Decimal(0)
            for one in found:
                row = one.row.request
                assert row is not None
                asked = row.model_copy(update={"strategy": name, "policy": None}).to_request(
                    settings
                )
                account = Account()
                out = ask_output(await service.ask(asked, account))
                estimate = one.of(name)
                assert estimate is not None
                cost = out.spending.cost_usd
                assert cost is not None
                assert estimate.dollars.low <= cost <= estimate.dollars.worst
                assert len(account.attempts) <= estimate.calls
                expected, actual = expected + estimate.dollars.expected, actual + cost
            assert 0.9 < actual / expected < 1.1, name


@pytest.fixture(scope="module")
def estimating(redis_url: str, serve: Serve, index: Path, tiny_encoder: Path) -> Iterator[str]:
    settings = {
        "POSOLOGY_REDIS_URL": redis_url,
        "POSOLOGY_INDEX": str(index),
        "POSOLOGY_EMBEDDER": str(tiny_encoder),
        "POSOLOGY_MODEL": MODEL,
    }
    with serve(create_app(Settings.model_validate(settings))) as url:
        yield url


def post(url: str, body: Any, tenant: str = "default") -> httpx2.Response:
    headers = {"X-Posology-Tenant": tenant}
    with httpx2.Client(base_url=url, headers=headers, trust_env=False, timeout=200) as client:
        return client.post("/v1/estimate", json=body)


def test_the_api_estimates_one_question_or_a_list(estimating: str, tenant: str) -> None:
    one = post(estimating, {"question": QUESTION}, tenant)
    assert one.status_code == 200, one.text
    out = EstimateOutput.model_validate_json(one.content)
    assert [s.strategy for s in out.questions[0].strategies] == list(STRATEGIES)
    assert out.balances is not None
    several = post(estimating, [{"id": "a", "question": QUESTION}, 7, {"question": ""}], tenant)
    found = EstimateOutput.model_validate_json(several.content)
    assert [q.id for q in found.questions] == ["a"]
    assert [bad.row for bad in found.bad] == [1, 2]
    assert found.totals == out.totals


def test_a_question_that_continues_one_is_estimated_with_it(estimating: str, tenant: str) -> None:
    headers = {"X-Posology-Tenant": tenant}
    with httpx2.Client(base_url=estimating, headers=headers, trust_env=False) as client:
        first = client.post("/v1/jobs", json={"question": QUESTION}).json()["id"]
    found = post(estimating, {"question": "And in children?", "parent": first}, tenant)
    assert found.status_code == 200, found.text
    (asked,) = EstimateOutput.model_validate_json(found.content).questions
    assert asked.question == f"{QUESTION} And in children?"


@pytest.mark.parametrize(
    ("body", "status", "name"),
    [
        ({"question": ""}, 422, "invalid-query"),
        ({"question": QUESTION, "k": "8"}, 422, "invalid-query"),
        ({"question": QUESTION, "parent": f"job_{0:028}"}, 422, "invalid-query"),
        ({"question": QUESTION, "model": "openai:nobody-knows-it"}, 422, "unpriced-model"),
        ([], 422, "invalid-query"),
        ([{"question": QUESTION}] * 1_001, 422, "invalid-query"),
        ([{"question": QUESTION, "k": 200}] * 51, 422, "invalid-query"),
        ("no object", 422, "invalid-query"),
    ],
)
def test_what_cannot_be_estimated_is_a_problem(
    estimating: str, body: Any, status: int, name: str
) -> None:
    reply = post(estimating, body)
    assert (reply.status_code, reply.json()["type"]) == (status, f"urn:posology:problem:{name}")


def test_an_api_without_an_index_says_what_to_do(serve: Serve, redis_url: str) -> None:
    with serve(create_app(Settings.model_validate({"POSOLOGY_REDIS_URL": redis_url}))) as url:
        reply = post(url, {"question": QUESTION})
    assert (reply.status_code, reply.json()["type"]) == (503, "urn:posology:problem:no-index")
    assert "POSOLOGY_INDEX" in reply.json()["detail"]


@pytest.fixture
def opened(redis_url: str, index: Path, tiny_encoder: Path) -> Callable[[Limits], FastAPI]:
    """Makes an API with limits of its own over the index."""

    def make(limits: Limits) -> FastAPI:
        settings = {
            "POSOLOGY_REDIS_URL": redis_url,
            "POSOLOGY_INDEX": str(index),
            "POSOLOGY_EMBEDDER": str(tiny_encoder),
            "POSOLOGY_MODEL": MODEL,
        }
        return create_app(Settings.model_validate(settings), limits=limits)

    return make


def test_an_estimate_has_its_time(
    serve: Serve, opened: Callable[[Limits], FastAPI], tenant: str
) -> None:
    with serve(opened(Limits(estimate=0.0))) as url:
        reply = post(url, [{"question": QUESTION}], tenant)
    assert (reply.status_code, kind(reply)) == (422, "estimate-too-long")


def test_a_tenant_has_one_estimate_and_it_ends_when_its_client_leaves(
    serve: Serve, opened: Callable[[Limits], FastAPI], tenant: str
) -> None:
    # 1,000 questions take minutes: what ends sooner was stopped
    app = opened(Limits(estimate=3_600.0))
    places = app.state.context.estimates
    body = json.dumps([{"question": QUESTION}] * 1_000).encode()
    with serve(app) as url:
        post(url, {"question": QUESTION}, tenant)
        address = httpx2.URL(url)
        with socket.create_connection((address.host, address.port or 0), timeout=90) as client:
            client.sendall(
                f"POST /v1/estimate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"X-Posology-Tenant: {tenant}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            until(lambda: places.taken == 1)
            second = post(url, {"question": QUESTION}, tenant)
            assert (second.status_code, kind(second)) == (429, "too-many-estimates")
            assert second.headers["retry-after"]
            other = threading.Thread(target=lambda: found.append(post(url, {"question": QUESTION})))
            found: list[httpx2.Response] = []
            other.start()
            until(lambda: places.taken == 2)
        # the client has left, and the other's turn comes
        other.join(90)
        until(lambda: places.taken == 0)
    assert [reply.status_code for reply in found] == [200]


def kind(reply: httpx2.Response) -> str:
    return str(reply.json()["type"]).rpartition(":")[2]


@pytest.mark.slow
def test_others_are_served_while_many_are_estimated(estimating: str) -> None:
    post(estimating, {"question": QUESTION})
    found: list[int] = []
    body = [{"question": QUESTION}] * 150
    thread = threading.Thread(target=lambda: found.append(post(estimating, body).status_code))
    thread.start()
    served = 0
    with httpx2.Client(base_url=estimating, trust_env=False, timeout=90) as client:
        while thread.is_alive():
            client.get("/healthz").raise_for_status()
            served += 1
            time.sleep(0.05)
    thread.join()
    assert found == [200]
    assert served > 3, "each of them waited for the estimate's end"


def test_the_price_of_each_lane_is_shown_where_there_is_a_choice(cli: Cli, tmp_path: Path) -> None:
    source = rows(tmp_path / "q.jsonl", {"question": QUESTION}, {"question": QUESTION})
    out = estimated(cli(source, "--model", "openai:gpt-6-luna", "--strategy", "direct", "--json"))
    lanes = {lane.tier: lane for lane in out.lanes}
    assert list(lanes) == ["standard", "flex", "batch"]
    assert out.decided is not None
    assert lanes["standard"].expected_usd == out.decided.expected_usd
    assert lanes["flex"].expected_usd * 2 == out.decided.expected_usd
    # a flex call may be served as a standard one, a batch may not
    assert lanes["flex"].worst_usd == out.decided.worst_usd
    assert lanes["batch"].worst_usd * 2 == out.decided.worst_usd
    assert [lane.latest_seconds for lane in out.lanes] == [None, None, 86_400.0]
    assert [lane.waves for lane in out.lanes] == [None, None, 1]

    flex = estimated(cli(source, "--model", "openai:gpt-6-luna", "--tier", "flex", "--json"))
    assert flex.decided is not None
    assert flex.decided.worst_usd == max(lane.worst_usd for lane in flex.lanes)
    shown = cli(source, "--model", "openai:gpt-6-luna", "--strategy", "direct").stdout
    assert "tier batch: expected" in shown
    assert "within 24 h" in shown


def test_a_batch_that_may_end_at_the_standard_price_is_bounded_by_it(
    cli: Cli, tmp_path: Path
) -> None:
    source = rows(tmp_path / "q.jsonl", {"question": QUESTION})
    chosen = ("--model", "openai:gpt-6-luna", "--strategy", "direct", "--json")
    standard = estimated(cli(source, *chosen)).decided
    ends = estimated(cli(source, *chosen, "--tier", "batch-then-standard")).decided
    assert standard is not None
    assert ends is not None
    assert ends.expected_usd * 2 == standard.expected_usd
    assert ends.worst_usd == standard.worst_usd


def test_the_latest_time_of_a_batch_counts_its_waves(cli: Cli, tmp_path: Path) -> None:
    source = rows(tmp_path / "q.jsonl", {"question": QUESTION})
    chosen = ("--model", "openai:gpt-6-luna", "--strategy", "briefcontext")
    batch = next(o for o in estimated(cli(source, *chosen, "--json")).lanes if o.tier == "batch")
    assert (batch.waves, batch.latest_seconds) == (2, 2 * 86_400.0)
    assert "within 48 h (2 batches, one after another)" in cli(source, *chosen).stdout
