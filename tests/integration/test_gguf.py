"""Models out of files: one llama.cpp for all processes of a home, with a tiny model of random weights."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from posology.errors import ContextTooLong, ModelNotFound, ModelUnavailable
from posology.llm.providers.local.gguf import GgufAdapter
from posology.llm.providers.local.process import stop
from posology.query import make_query
from posology.types import Call, Message, PromptId, Role, Stage
from tests.support.llama import write_model
from tests.support.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="xllamacpp has no wheel for Windows"),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("xllamacpp")
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    write_model(path, seed=7)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    stop(tmp_path / "gguf")
    until(lambda: not states(tmp_path), 30)


def states(home: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (home / "gguf").glob("*.json")]


def adapter_of(home: Path, **changes: Any) -> GgufAdapter:
    given: dict[str, Any] = {"idle": 600.0, "window": 2_048, **changes}
    return GgufAdapter(
        home=home, timeout=60.0, min_tokens_per_second=None, native_schema=True, **given
    )


def asking(model: Path | str, text: str = "Does aspirin prevent stroke?") -> Call:
    return Call(
        stage=Stage.ANSWER,
        model=f"gguf:{model}",
        query=make_query("Does aspirin prevent stroke?"),
        excerpts=(),
        messages=(Message(role=Role.USER, content=text),),
        prompt=PromptId(name="answer", digest="0" * 16),
        max_tokens=8,
    )


async def test_one_server_answers_all_adapters_of_a_home(model: Path, home: Path) -> None:
    first, second = adapter_of(home), adapter_of(home)
    replies = [await adapter(asking(model)) for adapter in (first, second, first)]
    (state,) = states(home)
    assert replies[0].served_model == "tiny"
    assert replies[0].text == replies[1].text == replies[2].text
    assert replies[0].usage is not None
    assert replies[0].usage.total_output == 8
    with pytest.raises(ContextTooLong, match="2,048 tokens"):
        await first(asking(model, "aspirin " * 3_000))
    # without its state, the server ends, and the next call starts another
    stop(home / "gguf")
    assert (await second(asking(model))).text == replies[0].text
    (other,) = states(home)
    assert (other["pid"], other["key"]) != (state["pid"], state["key"])
    for adapter in (first, second):
        await adapter.aclose()


async def test_a_server_that_nobody_asks_ends(model: Path, home: Path) -> None:
    adapter = adapter_of(home, idle=0.5)
    await adapter(asking(model))
    await adapter.aclose()
    until(lambda: not states(home), 30)


async def test_a_file_that_is_no_model_says_what_to_do(home: Path) -> None:
    adapter = adapter_of(home)
    with pytest.raises(ModelNotFound, match="No such file"):
        await adapter(asking(home / "absent.gguf"))
    text = home / "text.gguf"
    text.write_text("no model")
    with pytest.raises(ModelNotFound, match="is no GGUF file"):
        await adapter(asking(text))
    cut = home / "cut.gguf"
    cut.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ModelUnavailable, match=r"cannot serve .*: the file may be incomplete.*log"):
        await adapter(asking(cut))


async def test_without_the_extra_it_is_named(
    model: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'posology\[local\]'"):
        await adapter_of(home)(asking(model))
