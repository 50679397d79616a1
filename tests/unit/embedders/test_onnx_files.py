"""A cache of exports: each made once, whole or not at all; and what cannot be made is remembered."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.cli.common import tell_preparing
from posology.index.embedders.card import Card
from posology.index.embedders.onnx import files
from posology.index.embedders.onnx.files import Export, find_or_make, key
from posology.index.embedders.onnx.forward import NotExported

CARD = Card(
    name="n", dim=2, limit=9, pooling="mean", pools_prompt=True, prompts={"query": "q: "}, pad=0
)


def export(model: bytes = b"model") -> Export:
    return Export(model=model, tokenizer="{}", card=CARD)


class Maker:
    """Makes an export, or fails, and counts how often it was asked."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked = 0
        self._error = error

    def __call__(self) -> Export:
        self.asked += 1
        if self._error is not None:
            raise self._error
        return export()


def test_many_at_once_make_it_once(tmp_path: Path) -> None:
    make = Maker()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: find_or_make(tmp_path / "c", "key", make), range(8)))
    assert make.asked == 1
    assert {(f.model, f.tokenizer, f.card.dump()) for f in found} == {(b"model", "{}", CARD.dump())}


def test_a_command_says_once_that_the_encoder_is_prepared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = logging.getLogger(files.__name__)
    try:
        tell_preparing()
        tell_preparing()
        find_or_make(tmp_path, "key", export)
        assert capsys.readouterr() == ("", "preparing the encoder, once, about a minute\n")
        find_or_make(tmp_path, "key", export)
        assert capsys.readouterr() == ("", "")
    finally:
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)


def _in_another_process(cache: Path, began: Path) -> None:
    def make() -> Export:
        with began.open("a") as file:
            file.write("x")
        time.sleep(0.2)
        return export(b"model" * 100_000)

    assert find_or_make(cache, "key", make).model == b"model" * 100_000


def test_of_several_processes_one_makes_it_and_none_is_harmed(tmp_path: Path) -> None:
    began = tmp_path / "began"
    context = multiprocessing.get_context("spawn")
    others = [
        context.Process(target=_in_another_process, args=(tmp_path / "c", began)) for _ in range(3)
    ]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert [other.exitcode for other in others] == [0, 0, 0]
    assert began.read_text() == "x"


def test_what_another_has_made_where_locks_do_not_hold_stays(tmp_path: Path) -> None:
    def late() -> Export:
        # another machine, whose lock is not this one's
        find_or_make(tmp_path / "elsewhere", "key", export)
        (tmp_path / "elsewhere" / "key").rename(tmp_path / "c" / "key")
        return export(b"later")

    assert find_or_make(tmp_path / "c", "key", late).model == b"model"
    assert find_or_make(tmp_path / "c", "key", late).model == b"model"
    assert not list((tmp_path / "c").glob(".*"))


def test_what_failed_leaves_nothing_that_counts(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        find_or_make(tmp_path, "key", Maker(RuntimeError("killed")))
    # processes that were killed while they wrote, long ago and a moment ago
    for name, age in (("old", 7_200), ("new", 0)):
        draft = tmp_path / f".key.{name}"
        (draft / "new").mkdir(parents=True)
        (draft / "new" / "model.onnx").write_bytes(b"half")
        note = tmp_path / f".key.failed.json.{name}"
        note.write_text("{")
        for path in (draft, note):
            os.utime(path, (time.time() - age,) * 2)
    assert find_or_make(tmp_path, "key", export).model == b"model"
    left = {path.name for path in tmp_path.glob(".key.*")}
    assert left == {".key.new", ".key.failed.json.new"}


def test_a_half_written_export_under_its_own_name_is_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "key").mkdir()
    (tmp_path / "key" / "model.onnx").write_bytes(b"half")
    make = Maker()
    assert [find_or_make(tmp_path, "key", make).model for _ in range(3)] == [b"model"] * 3
    assert make.asked == 1
    (told,) = caplog.records
    assert "damaged" in told.getMessage()
    assert "SHA256SUMS" in told.getMessage()


def test_a_failure_is_remembered_with_the_libraries_that_it_hangs_on(tmp_path: Path) -> None:
    make = Maker(NotExported("it pools by 'max'"))
    for n in range(3):
        with pytest.raises(NotExported, match="'max'") as raised:
            find_or_make(tmp_path, "key", make)
        assert raised.value.known is (n > 0)
    assert make.asked == 1
    # another model is another key
    with pytest.raises(NotExported):
        find_or_make(tmp_path, "other", make)
    assert make.asked == 2
    told = json.loads((tmp_path / "key.failed.json").read_text())
    assert set(told["libraries"]) == {
        "onnx",
        "onnxruntime",
        "sentence-transformers",
        "torch",
        "transformers",
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"transformers": "', '"transformers": "0.'),
        lambda text: text[: len(text) // 2],
        lambda _: "[]",
    ],
)
def test_with_other_libraries_or_a_damaged_note_it_is_tried_again(
    tmp_path: Path, change: Callable[[str], str]
) -> None:
    with pytest.raises(NotExported):
        find_or_make(tmp_path, "key", Maker(NotExported("not traced")))
    note = tmp_path / "key.failed.json"
    assert change(note.read_text()) != note.read_text()
    note.write_text(change(note.read_text()))
    make = Maker()
    assert [find_or_make(tmp_path, "key", make).model for _ in range(2)] == [b"model"] * 2
    assert make.asked == 1


@pytest.mark.parametrize("error", [OSError("disk full"), MemoryError(), ImportError("no onnx")])
def test_what_says_nothing_of_the_model_is_not_remembered(tmp_path: Path, error: Exception) -> None:
    make = Maker(error)
    for _ in range(2):
        with pytest.raises(type(error)):
            find_or_make(tmp_path, "key", make)
    assert make.asked == 2


def test_the_key_hangs_on_files_weights_and_recipe(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    before = key(tmp_path, "w", "int8")
    assert key(tmp_path, "w", "int8") == before
    assert len({before, key(tmp_path, "v", "int8"), key(tmp_path, "w", "float32")}) == 3
    (tmp_path / "config.json").write_text("{ }")
    assert key(tmp_path, "w", "int8") != before
