"""The command as a person and a script meet it, down to real sockets and a real index."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from redis import Redis
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app, guard
from orchestrator.cli.schemas import SCHEMAS as SCHEMAS_BY_NAME
from posology.budget.ledger.base import dollars
from posology.errors import IndexFault, VersionGone
from posology.store import keys
from posology.testing import NoSuchModel, Reply, Status, StubProvider
from posology.testing.provider.echo import echo
from posology.version import __version__
from tests.support.commands import SCHEMAS, Cli, published

RUNNER = CliRunner()
SENTENCE = "Aspirin lowered the risk of stroke in adults."
ROWS: list[dict[str, Any]] = [
    {"id": "t:1", "title": "Aspirin", "text": f"{SENTENCE} The dose was 75 mg.", "year": 2001,
     "pmid": 123, "publication_types": ["Randomized Controlled Trial"]},
    {"id": "t:2", "title": "Stroke", "text": "The risk of stroke in adults is not low."},
    {"id": "t:3", "text": "Aspirin was withdrawn from this study.", "retracted": True},
]  # fmt: skip

Script = Callable[..., StubProvider]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "rows.jsonl"
    lines = [json.dumps(row) for row in ROWS]
    path.write_text("\n".join([lines[0], "{not json", *lines[1:]]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def built(
    corpus: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Result]:
    place = tmp_path_factory.mktemp("index") / "small"
    arguments = ["ingest", str(corpus), "--index", str(place), "--json"]
    result = RUNNER.invoke(app, arguments, env={"POSOLOGY_EMBEDDER": str(tiny_encoder)})
    return place, result


@pytest.fixture
def cli(built: tuple[Path, Result], tiny_encoder: Path) -> Cli:
    def run(*arguments: str, **env: str) -> Result:
        environment = {"POSOLOGY_INDEX": str(built[0]), "POSOLOGY_EMBEDDER": str(tiny_encoder)}
        return RUNNER.invoke(app, list(arguments), env={**environment, **env})

    return run


@pytest.fixture
def stub() -> Iterator[Script]:
    """Starts a provider with a script."""
    with ExitStack() as running:
        yield lambda *steps: running.enter_context(StubProvider(steps))


def reply(
    answer: str = "Aspirin lowered the risk of stroke.",
    sentence: str = SENTENCE,
    *,
    answerable: bool = True,
) -> Callable[[Any], str]:
    """States something, and names the number that a sentence has where it is shown."""

    def write(asked: Any) -> str:
        names = [number_of(sentence, asked)] if answerable else []
        statements = [{"text": answer, "sentences": names}]
        return json.dumps({"answerable": answerable, "choice": None, "statements": statements})

    return write


def number_of(sentence: str, asked: Any) -> str:
    """The number of a sentence in a request; of one that is not shown, a number that no sentence has."""
    texts = [m["content"] for m in asked["messages"] if isinstance(m["content"], str)]
    found = re.search(rf"(\d+\.\d+) {re.escape(sentence)}", "\n".join(texts))
    return found[1] if found else "99.1"


def copied(answer: str = "It did.", quote: str = SENTENCE) -> str:
    """Copies a quote, with the label of whichever passage comes first: the quote is found where it is."""
    quotes = [{"passage": "P1", "quote": quote}]
    return json.dumps({"answerable": True, "answer": answer, "choice": None, "quotes": quotes})


def refuse(asked: Any) -> str:
    """Finds nothing, whatever is asked for."""
    if '"findings"' in json.dumps(asked):
        return json.dumps({"found": False, "findings": []})
    return reply("Not in there.", answerable=False)(asked)


def openai(stub: StubProvider) -> dict[str, str]:
    return {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": stub.openai_url}


def anthropic(stub: StubProvider) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": "sk-test", "ANTHROPIC_BASE_URL": stub.anthropic_url}


@pytest.mark.parametrize("name", list(SCHEMAS_BY_NAME))
def test_the_published_schema_is_the_commands_own(name: str) -> None:
    result = RUNNER.invoke(app, ["schema", name])
    assert result.exit_code == 0
    assert result.stdout == (SCHEMAS / f"{name}.json").read_text(encoding="utf-8")


def test_ingest_reports_bad_records_with_their_place_and_keeps_the_good(
    built: tuple[Path, Result], corpus: Path
) -> None:
    _, result = built
    assert result.exit_code == 1
    out = published(result, "ingest")
    assert (out["good"], out["bad"], out["written"]) == (3, 1, 3)
    assert [(item["path"], item["line"]) for item in out["bad_records"]] == [(str(corpus), 2)]


def test_ingest_says_the_same_to_a_person(cli: Cli, corpus: Path) -> None:
    result = cli("ingest", str(corpus))
    assert result.exit_code == 1
    assert "0 written, 3 unchanged, 0 replaced" in result.stdout
    assert f"{corpus}:2:" in result.stderr.replace("\n", "")


def test_index_info(cli: Cli) -> None:
    out = published(cli("index", "info", "--json"), "index")
    assert (out["passages"], out["retracted"], out["dim"]) == (3, 1, 32)
    assert out["posology_version"] == __version__
    assert "passages" in cli("index", "info").stdout


def test_an_upgrade_counts_passages_whose_embedder_has_no_roles(cli: Cli) -> None:
    out = published(cli("index", "upgrade", "--json"), "upgrade")
    assert (out["written"], out["left"]) == (0, 3)
    assert "3 have none" in cli("index", "upgrade").stdout.replace("\n", " ")


@pytest.mark.parametrize("mode", ["dense", "bm25", "fused", "dense>bm25", "bm25>dense"])
def test_search_shows_every_ranking_and_no_retracted_passage(cli: Cli, mode: str) -> None:
    out = published(cli("search", "aspirin and stroke", "--mode", mode, "--json"), "search")
    assert out["mode"] == mode
    assert {hit["passage"]["id"] for hit in out["hits"]} == {"t:1", "t:2"}
    assert set(out["dense"]) == set(out["bm25_rerank"]) == {"t:1", "t:2"}
    assert out["bm25"][0] == "t:1"


def test_search_finds_the_retracted_when_asked(cli: Cli) -> None:
    result = cli("search", "aspirin withdrawn from study", "--retracted")
    assert result.exit_code == 0
    assert "t:3" in result.stdout
    assert "RETRACTED" in result.stdout


def test_show_prints_a_passage_in_full(cli: Cli) -> None:
    out = published(cli("show", "t:1", "--json"), "passage")
    assert out["text"] == ROWS[0]["text"]
    assert out["passage"]["pmid"] == "123"
    shown = cli("show", "t:1").stdout
    assert ROWS[0]["text"] in shown
    assert "https://pubmed.ncbi.nlm.nih.gov/123/" in shown
    assert cli("show", "t:1", "--format", "ris").stdout.startswith("TY  - GEN\n")
    assert "[Aspirin](<https" in cli("show", "t:1", "--format", "markdown").stdout
    missing = cli("show", "123")
    assert missing.exit_code == IndexFault.exit_code
    assert "pmid:123" in missing.stderr
    assert cli("show", "t:1", "--index-version", "99").exit_code == VersionGone.exit_code


def test_a_question_that_is_not_english_is_told_so(cli: Cli) -> None:
    french = "Quels sont les effets secondaires de la chimiothérapie chez la femme ?"
    out = published(cli("ask", french, "--json"), "ask")
    assert any("French" in note for note in out["notes"])
    assert out["status"] == "refused"
    assert "French" in out["refusal"]
    assert "French" in cli("search", french).stderr
    out = published(cli("ask", "Is the moon made of cheese?", "--json"), "ask")
    assert "English" not in json.dumps([out["refusal"], *out["notes"]])


def test_search_prints_citations_of_what_it_lists(cli: Cli) -> None:
    result = cli("search", "aspirin and stroke", "--format", "csl")
    assert {one["id"] for one in json.loads(result.stdout)} == {"t:1", "t:2"}
    assert cli("search", "x", "--json", "--format", "ris").exit_code == 2


@pytest.mark.parametrize("provider", [openai, anthropic])
def test_ask_gives_a_verified_quote_with_its_tokens_and_cost(
    cli: Cli, stub: Script, provider: Callable[[StubProvider], dict[str, str]]
) -> None:
    model = {"openai": "openai:gpt-4o-mini", "anthropic": "anthropic:claude-sonnet-5"}
    served = stub(Reply(text=reply()))
    result = cli(
        "ask", "Did aspirin lower the risk?", "--json",
        "--model", model[provider.__name__], **provider(served),
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    out = published(result, "ask")
    assert out["status"] == "answered"
    (evidence,) = out["evidence"]
    assert evidence["quote"] == SENTENCE
    assert evidence["passage"]["id"] == "t:1"
    assert ROWS[0]["text"][evidence["start"] : evidence["end"]] == SENTENCE
    assert evidence["passage"]["pmid"] == "123"
    assert out["spending"]["usage"]["input"] > 0
    assert float(out["spending"]["cost_usd"]) > 0
    assert len(out["spending"]["attempts"]) == len(served.requests) == 1
    assert "t:3" not in {hit["passage"]["id"] for hit in out["retrieved"]}


def test_ask_marks_the_quote_for_a_person(cli: Cli, stub: Script) -> None:
    served = stub(Reply(text=reply()))
    result = cli(
        "ask", "Did aspirin lower the risk?", "--model", "openai:gpt-4o-mini", **openai(served)
    )
    assert result.exit_code == 0
    flat = " ".join(result.stdout.replace("│", " ").split())
    for shown in ("answered", SENTENCE, "PMID 123", "2001", "tokens", "$0.0", "openai:gpt-4o-mini"):
        assert shown in flat


def test_a_copied_quote_is_found_where_it_is_if_copies_are_asked_for(
    cli: Cli, stub: Script
) -> None:
    served = stub(Reply(text=copied()))
    asked = ("ask", "Did aspirin lower the risk?", "--json", "--model", "openai:gpt-4o-mini")
    result = cli(*asked, POSOLOGY_QUOTES="copied", **openai(served))
    assert result.exit_code == 0, result.stderr
    (evidence,) = published(result, "ask")["evidence"]
    assert (evidence["quote"], evidence["passage"]["id"]) == (SENTENCE, "t:1")


@pytest.mark.parametrize(
    ("quotes", "text"),
    [
        ("copied", copied(quote="Aspirin doubled the risk of stroke.")),
        # no sentence that is shown says it
        (
            "sentences",
            reply("Aspirin cured stroke in women.", "Aspirin doubled the risk of stroke."),
        ),
        # a sentence that is shown, and says something else
        ("sentences", reply("Aspirin cured stroke in women.", "The dose was 75 mg.")),
    ],
)
def test_an_invented_quote_leaves_the_answer_unsupported(
    cli: Cli, stub: Script, quotes: str, text: str | Callable[[Any], str]
) -> None:
    served = stub(Reply(text=text))
    asked = ("ask", "Did aspirin lower the risk?", "--json", "--model", "openai:gpt-4o-mini")
    out = published(cli(*asked, POSOLOGY_QUOTES=quotes, **openai(served)), "ask")
    assert (out["status"], out["dropped_quotes"], out["evidence"]) == ("unsupported", 1, [])


def test_a_refusal_is_an_answer(cli: Cli, stub: Script) -> None:
    served = stub(Reply(text=reply("The passages say nothing of dogs.", answerable=False)))
    result = cli("ask", "And in dogs?", "--json", "--model", "openai:gpt-4o-mini", **openai(served))
    assert result.exit_code == 0
    out = published(result, "ask")
    assert (out["status"], out["answer"]) == ("refused", None)
    assert "dogs" in out["refusal"]


def test_the_offline_reader_needs_no_key(cli: Cli) -> None:
    result = cli("ask", "Did aspirin lower the risk of stroke in adults?", "--json")
    assert result.exit_code == 0, result.stderr
    out = published(result, "ask")
    assert out["model"] == "offline:extractive"
    assert float(out["spending"]["cost_usd"]) == 0
    assert out["spending"]["usage"]["input"] > 0


def test_a_question_costs_no_more_than_it_may(cli: Cli, stub: Script) -> None:
    served = stub(Reply(text=reply()))
    asked = ("ask", "Did aspirin lower the risk?", "--json", "--model", "openai:gpt-4o-mini")
    refused = cli(*asked, "--max-cost", "0.00001", **openai(served))
    assert refused.exit_code == 11
    error = published(refused, "error")["error"]
    assert (error["type"], error["details"]["remaining"]) == ("NothingAffordable", "0.00001")
    assert "0.0" in error["details"]["cheapest"]
    assert not served.requests
    assert cli(*asked, "--max-cost", "0.01", **openai(served)).exit_code == 0


def test_a_question_is_paid_for_by_the_tenant_where_there_is_a_store(
    cli: Cli, stub: Script, redis_url: str, tenant: str
) -> None:
    served = stub(Reply(text=reply()), Reply(text=reply()))
    asked = ("ask", "Did aspirin lower the risk?", "--json", "--model", "openai:gpt-4o-mini")
    where = {"POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_TENANT": tenant, **openai(served)}
    out = published(cli(*asked, **where), "ask")
    with Redis.from_url(redis_url, decode_responses=True) as redis:
        prefix = keys.prefix(tenant)
        money = cast("dict[str, str]", redis.hgetall(f"{prefix}money"))
        assert dollars(money["spent:total"]) == Decimal(out["spending"]["cost_usd"]) > 0
        redis.hset(f"{prefix}tenant", "total", money["spent:total"])
    assert cli(*asked, **where).exit_code == 11
    assert len(served.requests) == 1


def test_a_model_without_a_price_is_refused_unless_declared_free(
    cli: Cli, stub: Script, tmp_path: Path
) -> None:
    served = stub(Reply(text=reply()))
    asked = ("ask", "Did aspirin lower the risk?", "--json", "--model", "openai:my-own")
    refused = cli(*asked, **openai(served))
    assert refused.exit_code == 4
    assert published(refused, "error")["error"]["type"] == "UnpricedModel"
    assert not served.requests
    prices = tmp_path / "prices.toml"
    prices.write_text('[free]\nmodels = ["openai:my-own"]\n', encoding="utf-8")
    out = published(cli(*asked, POSOLOGY_PRICES=str(prices), **openai(served)), "ask")
    assert float(out["spending"]["cost_usd"]) == 0


@pytest.mark.parametrize(
    ("arguments", "env", "code", "kind", "says"),
    [
        (["ask", " "], {}, 3, "InvalidQuery", "empty"),
        (["ask", "Which?", "--option", "A"], {}, 3, "InvalidQuery", "A=TEXT"),
        (["ask", "Why?", "--model", "gpt-4o"], {}, 4, "UnknownModel", "openai:NAME"),
        (["ask", "Why?", "--model", "openai:gpt-4o-mini"], {}, 4, "MissingKey", "OPENAI_API_KEY"),
        (["ask", "Why?", "--index", "/nowhere"], {}, 5, "IndexMissing", "posology ingest"),
        (["search", "why", "--index", "/nowhere"], {}, 5, "IndexMissing", "posology ingest"),
        (["ask", "Why?"], {"POSOLOGY_ATTEMPTS": "x"}, 4, "ConfigurationError", "POSOLOGY_ATTEMPTS"),
        (["ask", "Why?"], {"POSOLOGY_INDEX": ""}, 4, "ConfigurationError", "--index"),
        (["ask", "Why?"], {"POSOLOGY_EMBEDDER": "minilm"}, 5, "IndexMismatch", "made with"),
        (["ask", "Why?"], {"POSOLOGY_EMBEDDER": "/nowhere"}, 4, "EmbedderUnavailable", "nowhere"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_that_says_what_to_do(
    cli: Cli, arguments: list[str], env: dict[str, str], code: int, kind: str, says: str
) -> None:
    result = cli(*arguments, **env)
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith("posology: ")
    assert result.stderr.count("\n") == 1
    assert says in result.stderr
    out = published(cli(*arguments, "--json", **env), "error")["error"]
    assert (out["type"], out["exit_code"]) == (kind, code)


def test_a_failed_call_shows_the_account_of_its_attempts(cli: Cli, stub: Script) -> None:
    arguments = ("ask", "Why?", "--model", "openai:gpt-4o-mini")
    served = stub(Status(code=429, headers={"retry-after-ms": "10"}), NoSuchModel(), NoSuchModel())
    env = openai(served)
    result = cli(*arguments, "--json", **env)
    assert result.exit_code == 6
    out = published(result, "error")["error"]
    assert out["type"] == "ModelNotFound"
    assert [a["error"] for a in out["spending"]["attempts"]] == ["RateLimited", "ModelNotFound"]
    result = cli(*arguments, **env)
    assert "call 1 attempt 1: failed ModelNotFound" in result.stderr
    assert "sk-test" not in result.stdout + result.stderr


@pytest.mark.parametrize("arguments", [["ask"], ["ask", "Why?", "--k", "0"], ["nonsense"]])
def test_a_wrong_command_line_ends_with_2(cli: Cli, arguments: list[str]) -> None:
    assert cli(*arguments).exit_code == 2


def test_the_version_is_told(cli: Cli) -> None:
    assert cli("--version").stdout == f"posology {__version__}\n"


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (ZeroDivisionError("x"), 70)]
)
def test_no_traceback_reaches_a_user(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(SystemExit) as caught:
        guard(fail)
    assert caught.value.code == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_traceback_comes_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSOLOGY_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        guard(lambda: 1 / 0)


def test_the_demo_answers_a_dozen_and_says_what_was_expected(
    cli: Cli, stub: Script, tmp_path: Path
) -> None:
    partitions, dozen = 6, 12
    served = stub(*[Reply(text=echo)] * 200)
    result = cli(
        "demo", "--index", str(tmp_path / "sample"), "--model", "openai:gpt-4o-mini",
        POSOLOGY_HOME=str(tmp_path / "home"), **openai(served),
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    # the dozen, and one of them once more, read in partitions
    assert result.stdout.count("expected:") == dozen + 1
    assert f"{partitions} partitions: {partitions} with findings" in result.stdout
    assert "a refusal: no note answers this" in result.stdout
    flat = " ".join(result.stdout.replace("│", " ").split())
    assert "cost $0.0" in flat
    # the account of all that, a job that may cost next to nothing, and books that agree
    assert "$0.000001 are left" in flat
    assert f"demo correct {2 * len(served.requests)} entries" in flat
    assert "$0.000100 decline" in flat


@pytest.mark.slow
def test_the_whole_demo_prints_a_table_that_counts(cli: Cli, stub: Script, tmp_path: Path) -> None:
    # 8 passages by a ladder of three calls, and then by three partitions
    served = stub(*[Reply(text=refuse)] * 40 * 6)
    result = cli(
        "demo", "--all", "--index", str(tmp_path / "sample"), "--model", "openai:gpt-4o-mini",
        POSOLOGY_HOME=str(tmp_path / "home"), **openai(served),
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    # in a pipe, columns stand apart by at least two spaces
    rows = (re.split(r"\s{2,}", row.strip()) for row in result.stdout.splitlines())
    table = {row[0]: row[1] for row in rows if len(row) > 1}
    assert table["answerable: a gold passage is cited"] == "0/32"
    assert table["answerable: refused"] == "32/32"
    assert table["unanswerable: refused"] == "8/8"
    assert table["tokens in"] == f"{100 * len(served.requests):,}"
    # 100 tokens at $0.15 and 10 at $0.60 a million
    assert table["cost"] == f"${Decimal('0.000021') * len(served.requests):f}"
