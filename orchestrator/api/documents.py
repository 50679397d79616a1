"""Writes ``docs/openapi.json``: ``python -m orchestrator.api.documents``."""

from __future__ import annotations

import json
from pathlib import Path

from orchestrator.api.app import create_app
from orchestrator.settings import Settings


def main() -> None:
    """Write the OpenAPI document to ``docs/openapi.json`` of the working directory."""
    text = json.dumps(create_app(Settings()).openapi(), indent=2, ensure_ascii=False)
    Path("docs/openapi.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
