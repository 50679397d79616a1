from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = [
    "torch",
    "transformers",
    "sentence_transformers",
    "lancedb",
    "pyarrow",
    "openai",
    "anthropic",
    "celery",
]


@pytest.mark.parametrize(
    ("module", "kept_out"),
    [
        ("posology.client", [*HEAVY, "redis", "fastapi", "numpy", "orchestrator", "workers"]),
        ("orchestrator.api.app", HEAVY),
    ],
)
def test_importing_it_loads_nothing_heavy(module: str, kept_out: list[str]) -> None:
    code = f"import sys, {module}; print([m for m in {kept_out!r} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.strip() == "[]"
