from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module",
    ["posology.corpus.files", "posology.index.build.ingest", "posology.index.search.retriever"],
)
def test_importing_loads_nothing_heavy(module: str) -> None:
    code = (
        f"import sys, {module}; print(sorted({{'lancedb', 'pyarrow', 'torch'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
