"""Filters as a person gives them, down to a real index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from posology.errors import InvalidQuery
from tests.support.commands import Cli, published

ROWS: list[dict[str, Any]] = [
    {"id": "t:1", "text": "Aspirin lowered the risk of stroke in adults.", "year": 2001, "journal": "The Lancet",
     "publication_types": ["Randomized Controlled Trial"], "mesh": ["Aspirin/therapeutic use"], "languages": ["eng"]},
    {"id": "t:2", "text": "The risk of stroke in adults is not low without aspirin.", "year": 2012,
     "journal": "BMJ", "publication_types": ["Letter"], "mesh": ["Stroke"], "languages": ["eng", "fre"]},
    {"id": "t:3", "text": "Aspirin and stroke in adults, a review.", "journal": "Revue neurologique"},
]  # fmt: skip


@pytest.fixture(scope="module")
def cli(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    folder = tmp_path_factory.mktemp("filters")
    corpus = folder / "rows.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    environment = {
        "POSOLOGY_INDEX": str(folder / "index"),
        "POSOLOGY_EMBEDDER": str(tiny_encoder),
        "POSOLOGY_HOME": str(folder / "home"),
        "OPENAI_API_KEY": "sk-test",
    }

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments), env=environment)

    assert run("ingest", str(corpus)).exit_code == 0
    return run


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], {"t:1", "t:2", "t:3"}),
        (["--since", "2002"], {"t:2"}),
        (["--until", "2001"], {"t:1"}),
        (["--journal", "bmj", "--journal", "THE LANCET"], {"t:1", "t:2"}),
        (["--type", "letter"], {"t:2"}),
        (["--mesh", "aspirin"], {"t:1"}),
        (["--language", "FRE"], {"t:2"}),
        (["--language", "eng", "--type", "Letter", "--since", "2012", "--until", "2012"], {"t:2"}),
        (["--language", "eng", "--since", "2013"], set()),
    ],
)
def test_search_finds_what_may_be_found(cli: Cli, options: list[str], found: set[str]) -> None:
    out = published(cli("search", "aspirin and stroke in adults", *options, "--json"), "search")
    assert {hit["passage"]["id"] for hit in out["hits"]} == found
    for name in ("dense", "bm25", "bm25_rerank", "fused"):
        assert set(out[name]) == found, name
    assert (out["filters"] is None) == (not options)


def test_search_tells_the_filters(cli: Cli) -> None:
    told = cli("search", "aspirin", "--since", "2001", "--journal", "bmj").stdout
    assert "2001" in told
    assert "journal bmj" in told


def test_a_question_is_answered_within_its_filters_and_says_so(cli: Cli) -> None:
    asked = ("ask", "Did aspirin lower the risk of stroke?", "--mesh", "Aspirin")
    out = published(cli(*asked, "--json"), "ask")
    assert [one["passage"]["id"] for one in out["retrieved"]] == ["t:1"]
    assert out["filters"]["mesh"] == ["Aspirin"]
    assert "under the MeSH heading Aspirin" in " ".join(cli(*asked, "--why").stdout.split())


@pytest.mark.parametrize("strategy", ["direct", "compressed", "briefcontext", None])
def test_where_nothing_is_within_them_the_refusal_names_them(cli: Cli, strategy: str | None) -> None:  # fmt: skip
    chosen = ("--strategy", strategy) if strategy else ()
    result = cli(
        "ask", "Did aspirin help?", "--since", "2013", "--type", "Letter", *chosen, "--json"
    )
    out = published(result, "ask")
    assert out["status"] == "refused"
    assert "published in 2013 or later; of type Letter" in out["refusal"]
    assert out["spending"]["attempts"] == []


def test_a_name_that_no_passage_has_is_an_error_that_helps(cli: Cli) -> None:
    result = cli("ask", "Did aspirin help?", "--journal", "Lancet", "--json")
    assert result.exit_code == InvalidQuery.exit_code
    error = published(result, "error")["error"]
    assert error["details"] == {"field": "filters.journals"}
    assert "did you mean The Lancet?" in error["message"]
    years = cli("search", "aspirin", "--since", "2013", "--until", "2012", "--json")
    assert published(years, "error")["error"]["type"] == "InvalidQuery"


@pytest.mark.parametrize("command", ["estimate", "compare"])
def test_rows_bring_their_own(cli: Cli, tmp_path: Path, command: str) -> None:
    rows = tmp_path / "questions.jsonl"
    questions = [
        {"question": "Did aspirin help?"},
        {"question": "Did aspirin help?", "filters": {"languages": ["eng"]}},
        {"question": "Did aspirin help?", "filters": {"journals": ["Nobody's"]}},
    ]
    rows.write_text("".join(json.dumps(row) + "\n" for row in questions), encoding="utf-8")
    model = ("--model", "openai:gpt-4o-mini", "--since", "2012", "--json")
    if command == "estimate":
        result = cli("estimate", str(rows), *model)
        out = published(result, "estimate")
        assert [one["passages"] for one in out["questions"]] == [1, 2]
    else:
        result = cli(
            "policy", "compare", "direct", "briefcontext", "--questions", str(rows), *model
        )
        out = published(result, "compare")
        assert out["questions"] == 2
    assert result.exit_code == 1
    assert [(one["row"], one["error"]["type"]) for one in out["bad"]] == [(2, "InvalidQuery")]
