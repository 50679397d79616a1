"""The base package in an environment of its own: no torch, and README's first commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from posology.hub import EXTRAS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]


def run(*command: object, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel alone."""
    folder = tmp_path_factory.mktemp("base")
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    run(*build, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", folder / "env", cwd=folder)
    pip = (folder / "env" / "bin" / "python", "-m", "pip", "install", "--quiet")
    probe = subprocess.run(
        [*map(str, pip), "--dry-run", "--no-deps", "tenacity"], check=False, capture_output=True
    )
    if probe.returncode:
        pytest.skip("no package registry can be reached")
    run(*pip, "--constraint", ROOT / "constraints.txt", wheel, cwd=folder)
    return folder


def test_it_answers_without_torch(base: Path) -> None:
    python, posology = base / "env" / "bin" / "python", base / "env" / "bin" / "posology"
    packages = [package for some in EXTRAS.values() for package in some]
    names = f"from importlib.util import find_spec; print([n for n in {packages} if find_spec(n)])"
    assert run(python, "-c", names, cwd=base).strip() == "[]"
    own = {"POSOLOGY_HOME": str(base / "home"), "XDG_CACHE_HOME": str(base / "cache")}
    notes = f"{base}/notes.jsonl"
    where = "from posology.corpus.sample import *; [print(p.read_text()) for p in [notes_file().__enter__()]]"
    Path(notes).write_text(run(python, "-c", where, cwd=base), encoding="utf-8")
    run(posology, "ingest", notes, "--index", "index", cwd=base, **own)
    asked = "Does aspirin reduce the risk of preeclampsia?"
    answer = run(posology, "ask", asked, "--index", "index", cwd=base, **own)
    assert "pre-eclampsia" in answer
    assert "note:preg-002" in answer
    missing = subprocess.run(
        [posology, "ask", asked, "--index", "index", "--local"],
        cwd=base,
        env={**os.environ, **own, "POSOLOGY_RERANKER": "medcpt"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert missing.returncode == 4
    assert "pip install 'posology[models]'" in missing.stderr
