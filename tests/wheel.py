"""Builds the wheel, installs it beside nothing else of ours, and runs the smoke tests on it.

The tests run from a copy outside the repository, so that only the wheel's files can be imported.
The heavy dependencies are taken from the environment that runs this script.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = {"workers", "orchestrator", "strategies", "policies", "prompts", "posology"}


def main() -> None:
    """Build, unpack, test; the exit status is the tests'."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", work, ROOT)
        (wheel,) = work.glob("*.whl")
        site = work / "site"
        # a wheel of pure Python installs by unpacking; pip would skip it as already satisfied
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
        packed = {path.name for path in site.iterdir() if not path.name.endswith(".dist-info")}
        if packed != OURS:
            raise SystemExit(f"the wheel holds {sorted(packed)}, not {sorted(OURS)}")
        shutil.copytree(
            ROOT / "tests", work / "tests", ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copy(ROOT / "pyproject.toml", work)
        smoke = [
            path.relative_to(work)
            for path in (work / "tests").rglob("test_*.py")
            if "mark.smoke" in path.read_text(encoding="utf-8")
        ]
        # first on the path, before the editable install's entry
        environment = {**os.environ, "PYTHONPATH": str(site), "POSOLOGY_EXPECT_SITE": str(site)}
        _run(sys.executable, "-m", "pytest", "-q", "-m", "smoke", *smoke, cwd=work, env=environment)


def _run(*command: object, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    status = subprocess.run([str(part) for part in command], cwd=cwd, env=env, check=False)
    if status.returncode:
        raise SystemExit(status.returncode)


if __name__ == "__main__":
    main()
