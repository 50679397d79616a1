"""A chat tool that knows nothing of Posology, as its package has it: Simon Willison's `llm`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

import anyio
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_api_openai import ANSWER, QUESTION, Chat, chat, while_working

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
pytest.importorskip("llm", reason="the chat tool llm is not installed: pip install llm")

#: the file in which users of llm name further models
MODELS = """
- model_id: literature
  model_name: posology
  api_base: {url}/v1
  api_key_name: posology
- model_id: direct
  model_name: posology/direct
  api_base: {url}/v1
  api_key_name: posology
"""


async def llm(one: Chat, folder: Path, *arguments: str, said: str = "") -> tuple[int, str]:
    """Run the tool as a user does, with files of its own alone."""
    (folder / "extra-openai-models.yaml").write_text(MODELS.format(url=one.url), encoding="utf-8")
    (folder / "keys.json").write_text(json.dumps({"posology": one.key}), encoding="utf-8")
    environment = {**os.environ, "LLM_USER_PATH": str(folder), "NO_PROXY": "*"}
    with anyio.fail_after(240):
        done = await anyio.run_process(
            [sys.executable, "-m", "llm", *arguments],
            input=said.encode(), env=environment, stdout=PIPE, stderr=STDOUT, check=False,
        )  # fmt: skip
    return done.returncode, done.stdout.decode()


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_question_is_answered_with_its_sources(
    redis_url: str, tenant: str, serve: Serve, tmp_path: Path, *, streaming: bool
) -> None:
    options = [] if streaming else ["--no-stream"]
    async with chat(redis_url, tenant, serve) as one:
        status, text = await while_working(
            one, ANSWER, lambda: llm(one, tmp_path, "-m", "literature", *options, QUESTION)
        )
        assert status == 0, text
        assert "Aspirin reduced it." in text
        assert "https://pubmed.ncbi.nlm.nih.gov/7/" in text
        assert "RETRACTED" in text
        job = await one.job()
        assert job.question == QUESTION
        assert await one.jobs() == [job.id], "one question is one job"
        status, logged = await llm(one, tmp_path, "logs", "--json")
        (entry,) = json.loads(logged)
        assert (status, entry["response"].strip()) == (0, text.strip())


async def test_a_model_is_a_way_to_answer_and_a_chat_goes_on(
    redis_url: str, tenant: str, serve: Serve, tmp_path: Path
) -> None:
    async with chat(redis_url, tenant, serve) as one:
        found: list[Any] = []

        async def talk() -> None:
            said = f"{QUESTION}\nDoes it harm?\nexit\n"
            found.append(await llm(one, tmp_path, "chat", "-m", "direct", said=said))

        async with anyio.create_task_group() as group:
            group.start_soon(talk)
            await one.work(ANSWER)
            await one.work(ANSWER)
        ((status, text),) = found
        assert status == 0, text
        assert text.count("Aspirin reduced it.") == 2
        asked = [await one.store.get(job, tenant=tenant) for job in reversed(await one.jobs())]
        # the last message continues the one before
        assert [(job.question, job.request["strategy"]) for job in asked] == [
            (QUESTION, "direct"), (f"{QUESTION} Does it harm?", "direct"),
        ]  # fmt: skip
