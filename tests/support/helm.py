"""Helm's own linter and templates, by helm-python-sdk, in a process of their own: a Go runtime has its own signals."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "posology"

_SCRIPT = """
import json, sys
from helm_python import Chart, HelmError, chart

def done(path, values):
    try:
        with Chart.load(path) as loaded:
            loaded.validate_schema(values)
            rendered = loaded.render(values, name="demo", namespace="clinic")
        return {"lint": chart.lint(path, values, strict=True), "rendered": rendered}
    except HelmError as error:
        return {"error": str(error)}

path, values = json.load(sys.stdin)
json.dump(done(path, values), sys.stdout)
"""


class Refused(Exception):
    """The chart refuses its values."""


def render(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Lint the chart strictly, and return its objects; skip where Helm's package is not installed.

    Raises:
        Refused: the values are refused.
    """
    if importlib.util.find_spec("helm_python") is None:
        pytest.skip("helm-python-sdk is not installed")
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], input=json.dumps([str(CHART), values]),
        capture_output=True, text=True, check=True, timeout=250,
    )  # fmt: skip
    found = json.loads(done.stdout)
    if "error" in found:
        raise Refused(found["error"])
    assert found["lint"]["errors"] == []
    # 1: advice, of which the one for an icon is not taken
    assert [one for one in found["lint"]["messages"] if one["severity"] > 1] == []
    texts = [text for name, text in found["rendered"].items() if name.endswith(".yaml")]
    return [one for text in texts for one in yaml.safe_load_all(text) if one]
