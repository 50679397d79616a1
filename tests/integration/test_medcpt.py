"""MedCPT's three models, in miniature, from the command line: ingest, search, re-rank, ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from posology.index.embedders import load
from posology.index.rerankers import medcpt as cross
from posology.index.store import Index
from posology.testing.models.medcpt import TinyMedCPT, save_tiny_medcpt

pytestmark = pytest.mark.timeout(600)

RUNNER = CliRunner()
QUESTION = "Did aspirin lower the risk of stroke in adults?"
ROWS = [
    {"id": f"t:{n}", "title": title, "text": text}
    for n, (title, text) in enumerate(
        [
            ("Aspirin in adults", "Aspirin lowered the risk of stroke in adults. It was daily."),
            ("The dose", "The dose of aspirin was 5 mg. No risk was seen."),
            ("", "Stroke is not the risk of aspirin in adults, nor of its dose."),
            ("Gout", "Adults with gout were given nothing. The risk was not lowered."),
        ]
    )
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyMedCPT:
    return save_tiny_medcpt(tmp_path_factory.mktemp("medcpt"))


@pytest.fixture(scope="module")
def place(tiny: TinyMedCPT, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("medcpt-index")
    rows = folder / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    place = folder / "index"
    out = run(tiny, place, "ingest", str(rows), "--json")
    assert (out["written"], out["bad"], out["spent_usd"]) == (len(ROWS), 0, None)
    return place


def run(tiny: TinyMedCPT, place: Path, *arguments: str, **more: str) -> dict[str, Any]:
    environment = {
        "POSOLOGY_INDEX": str(place),
        "POSOLOGY_EMBEDDER": tiny.embedder,
        "POSOLOGY_HOME": str(place.parent / "home"),
        **more,
    }
    result = RUNNER.invoke(app, list(arguments), env=environment)
    assert result.exit_code == 0, result.output
    out: dict[str, Any] = json.loads(result.stdout)
    return out


def test_passages_are_found_by_the_inner_product_of_vectors_as_they_are(
    tiny: TinyMedCPT, place: Path
) -> None:
    embedder = load(tiny.embedder)
    index = Index.open(str(place))
    assert index.meta.embedder == embedder.name
    ids = [str(row["id"]) for row in ROWS]
    vectors = np.stack([one.vector for one in index.view().fetch(ids)])
    assert (np.abs(np.linalg.norm(vectors, axis=1) - 1) > 0.1).any()
    scores = vectors @ embedder.encode_query(QUESTION).vector
    expected = [ids[i] for i in np.argsort(-scores)]
    out = run(tiny, place, "search", QUESTION, "--mode", "dense", "--k", "4", "--json")
    assert out["dense"] == expected
    shown = {hit["passage"]["id"]: hit["dense_score"] for hit in out["hits"]}
    assert [shown[i] for i in ids] == pytest.approx(scores.tolist(), rel=0.02)


def test_the_cross_encoder_settles_the_order(tiny: TinyMedCPT, place: Path) -> None:
    out = run(
        tiny, place, "search", QUESTION, "--k", "4", "--json", POSOLOGY_RERANKER=tiny.reranker
    )
    read = cross.load(str(tiny.cross))._read
    texts = [f"{row['title']}. {row['text']}" if row["title"] else row["text"] for row in ROWS]
    scores = read([(QUESTION, text) for text in texts], 1)[:, 0]
    assert [hit["passage"]["id"] for hit in out["hits"]] == [
        ROWS[i]["id"] for i in np.argsort(-scores)
    ]


def test_a_question_is_answered_from_what_they_find(tiny: TinyMedCPT, place: Path) -> None:
    out = run(
        tiny,
        place,
        "ask",
        QUESTION,
        "--json",
        "--k",
        "4",
        POSOLOGY_RERANKER=tiny.reranker,
        POSOLOGY_READER="late",
    )
    assert out["evidence"][0]["passage"]["id"] == "t:0"
    assert out["evidence"][0]["quote"].startswith("Aspirin lowered the risk of stroke")


def test_vectors_of_articles_that_were_published_are_taken_as_they_are(
    tiny: TinyMedCPT, tmp_path: Path
) -> None:
    rows, vectors = tmp_path / "rows.jsonl", tmp_path / "vectors.npy"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    given = np.random.default_rng(0).normal(0, 3, (len(ROWS), 32)).astype(np.float32)
    np.save(vectors, given)
    place = tmp_path / "index"
    run(tiny, place, "ingest", str(rows), "--vectors", str(vectors), "--json")
    found = Index.open(str(place)).view().fetch([str(row["id"]) for row in ROWS])
    np.testing.assert_array_equal(np.stack([one.vector for one in found]), given)
