"""Modules of ours that are loaded by what has to start quickly, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.api.examples import ANSWER, QUEUED
from tests.support.stub_stack import SEARCH, stub_stack

OURS = ("workers", "orchestrator", "strategies", "policies", "prompts", "posology")
STORE = "import orchestrator.jobs.store"
COMMAND = """
from orchestrator.cli.app import app
try:
    app({arguments}, standalone_mode=False)
except BaseException as error:
    # no stack runs in an empty folder: all is loaded by then
    assert getattr(error, "exit_code", 4) in (0, 4), error
"""
REPORT = """
import sys
ours = [name for name in sys.modules if name.partition(".")[0] in OURS]
sys.stderr.write(f"{len(ours)} {'numpy' in sys.modules}")
"""


def loaded(program: str, folder: Path) -> tuple[int, bool]:
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nOURS = {OURS}\n{REPORT}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    count, numpy = done.stderr.splitlines()[-1].split()[-2:]
    return int(count), numpy == "True"


@pytest.mark.parametrize(
    ("program", "most"),
    [
        pytest.param(STORE, 87, id="the job store"),
        pytest.param(COMMAND.format(arguments=["--help"]), 10, id="--help"),
        pytest.param(COMMAND.format(arguments=["jobs", "list"]), 108, id="jobs list"),
        pytest.param(COMMAND.format(arguments=["submit", "Why?"]), 108, id="submit"),
    ],
)
def test_little_is_loaded_and_no_numpy(
    program: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POSOLOGY_REDIS_URL", raising=False)
    count, numpy = loaded(program, tmp_path)
    assert not numpy
    assert 0 < count <= most


ASK = """
from orchestrator.environment import prepare_libraries
prepare_libraries()
import orchestrator.cli.ask.command, orchestrator.budget, orchestrator.service, orchestrator.question.report
import orchestrator.models, posology.index.store, lancedb
"""
SHELL = "from orchestrator.environment import prepare_libraries; prepare_libraries(); import orchestrator.cli.app"
#: packages that take long to import
HEAVY = {
    "torch",
    "transformers",
    "sentence_transformers",
    "lancedb",
    "pyarrow",
    "pandas",
    "sklearn",
    "celery",
    "scipy",
}
#: clients of services that a question on one machine does not need
CLIENTS = {
    "openai",
    "anthropic",
    "redis",
    "httpx2",
    "httpx",
    "fastapi",
    "obstore",
    "boto3",
    "mcp",
    "mcp_types",
    "opentelemetry.sdk",
}


@pytest.mark.parametrize(
    ("program", "unwanted"),
    [
        pytest.param(SHELL, HEAVY | CLIENTS | {"pydantic", "rich", "numpy", "anyio"}, id="--help"),
        # Redis's client imports OpenTelemetry's SDK where it is installed
        pytest.param(STORE, (HEAVY | CLIENTS) - {"redis", "opentelemetry.sdk"}, id="the job store"),
        pytest.param(ASK, (HEAVY | CLIENTS) - {"lancedb", "pyarrow"}, id="ask"),
        pytest.param("import orchestrator.api.app", HEAVY | {"openai", "anthropic"}, id="API"),
        pytest.param(
            "import posology.client",
            (HEAVY | CLIENTS | {"numpy", "orchestrator", "workers"}) - {"httpx", "httpx2"},
            id="client",
        ),
        pytest.param(
            "import posology.corpus.files, posology.index.build.ingest, posology.index.search.retriever",
            HEAVY,
            id="index",
        ),
        pytest.param(
            "import posology.text", HEAVY | {"numpy", "tokenizers", "pydantic"}, id="text"
        ),
    ],
)
def test_what_is_not_needed_is_not_imported(program: str, unwanted: set[str]) -> None:
    report = f"import sys; sys.stderr.write(repr(sorted({unwanted!r} & set(sys.modules))))"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{report}"], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"


THROUGH = """
from orchestrator.environment import prepare_libraries
prepare_libraries()
from orchestrator.cli.app import app
app({arguments}, standalone_mode=False)
"""


@pytest.mark.parametrize("command", ["ask", "search"])
def test_what_goes_through_a_stack_imports_no_model(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("POSOLOGY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("POSOLOGY_CONFIG", "off")
    unwanted = HEAVY | CLIENTS | {"numpy", "onnxruntime", "tokenizers", "pyarrow", "lance"}
    report = f"import sys; sys.stderr.write(repr(sorted({unwanted!r} & set(sys.modules))))"
    arguments = [command, "Why?", "--index", "papers"]
    with stub_stack(tmp_path / ".posology", "papers") as stack:
        found = {**SEARCH, "query": "Why?"}
        job = {**QUEUED, "state": "succeeded", "result": ANSWER}
        stack.replies |= {
            "GET /healthz": (200, {}),
            "GET /readyz": (200, {}),
            "POST /v1/search": (200, found),
            "POST /v1/jobs": (200, job),
        }
        done = subprocess.run(
            [sys.executable, "-c", f"{THROUGH.format(arguments=arguments)}\n{report}"],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
    assert stack.sent[-1].what.startswith("POST ")
    assert done.stderr.splitlines()[-1] == "[]"
