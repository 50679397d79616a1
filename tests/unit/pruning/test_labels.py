from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orchestrator.training.paid.rows import Failed
from orchestrator.training.pruner.rows import Begin, Labelled, open_labels, read_examples
from posology.errors import BadFile, InputError

BEGIN = Begin(
    started="2026-01-01T00:00:00", model="m:x", k=5, mode="fused", seed=0, embedder="e", prompt="p"
)


def row(call: str | None = "c", relevant: tuple[int, ...] | None = (0,), **more: Any) -> Labelled:
    made: dict[str, Any] = {"question": "Q?", "sentences": ("a.", "b."), "cost": Decimal("0.1")}
    return Labelled(call=call, relevant=relevant, **made | more)


def test_what_is_written_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    with open_labels(path) as file:
        assert not file.content.rows
        for one in (
            BEGIN,
            row(),
            Failed(call="d", error="E", message="m", cost=Decimal("0.2")),
            Failed(call="e", error="E", message="m", cost=Decimal(0)),
            row("d", None),
        ):
            file.write(one)
    with path.open("a") as text:
        text.write('{"row":"lab')
    with open_labels(path) as file:
        labels = file.content
        assert labels.begin == BEGIN
        assert (labels.calls, set(labels.failures)) == ({"c", "d"}, {"e"})
        assert labels.spent == Decimal("0.4")
        assert [one.relevant for one in labels.rows] == [(0,), None]
    assert path.read_text().endswith("}\n")
    assert [one.relevant for one in read_examples(path)] == [(0,)]


def written(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


def test_labels_of_people_are_read_and_the_last_of_a_pair_counts(tmp_path: Path) -> None:
    bare = {"question": "Q?", "sentences": ["a. ", "b\nc."], "relevant": [1, 0]}
    path = written(
        tmp_path / "l.jsonl", bare, bare | {"title": "T", "relevant": []}, bare | {"relevant": [1]}
    )
    first, second = read_examples(path)
    assert (first.sentences, first.relevant, first.title) == (("a.", "b c."), (1,), "")
    assert (second.title, second.relevant) == ("T", ())


@pytest.mark.parametrize(
    "wrong",
    [
        "no",
        [],
        {"question": "Q?"},
        {"question": "", "sentences": ["a"], "relevant": []},
        {"question": "Q?", "sentences": [], "relevant": []},
        {"question": "Q?", "sentences": [" "], "relevant": []},
        {"question": "Q?", "sentences": ["a"], "relevant": [1]},
        {"question": "Q?", "sentences": ["a"], "relevant": "0"},
        {"question": "Q?", "sentences": ["a"], "relevant": [0], "answer": "a"},
        {"row": "other"},
    ],
)
def test_what_is_no_label_is_told(tmp_path: Path, wrong: Any) -> None:
    path = written(
        tmp_path / "l.jsonl", {"question": "Q?", "sentences": ["a"], "relevant": []}, wrong
    )
    with pytest.raises(BadFile) as raised:
        read_examples(path)
    assert str(path) in str(raised.value)
    before = path.read_bytes()
    if raised.value.line is not None:
        with pytest.raises(BadFile), open_labels(path):
            pass
    assert path.read_bytes() == before


def test_a_file_that_teaches_nothing_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "l.jsonl", {"question": "Q?", "sentences": ["a"], "relevant": None})
    with pytest.raises(InputError, match=r"l\.jsonl"):
        read_examples(path)
    with pytest.raises(BadFile):
        read_examples(tmp_path / "gone.jsonl")
