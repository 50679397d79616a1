"""Writes the variables of the chart's services: ``python deploy/helm/environment.py``.

``files/environment.yaml`` gets those of docker-compose.yml, and ``values.schema.json`` the names that ``settings`` and
``secrets`` may have. ``files/redis.sh`` is a copy: a chart reads no file outside. A test compares the files with what
this returns.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from pydantic import SecretStr

from orchestrator.settings import Settings
from orchestrator.stack.redis_server import STARTER
from posology.llm.providers.table import variables

ROOT = Path(__file__).resolve().parents[2]
CHART = Path(__file__).resolve().parent / "posology"
ENVIRONMENT, SCHEMA = CHART / "files" / "environment.yaml", CHART / "values.schema.json"
SERVICES = ("api", "worker-jobs", "worker-calls", "worker-ingest", "ingest-uploads")
#: set by the chart itself
OWN = {"POSOLOGY_INDEX", "POSOLOGY_CACHE", "POSOLOGY_MEMORY", "POSOLOGY_UPLOADS"}
_HEAD = "# Variables that each service reads. Written by deploy/helm/environment.py, from docker-compose.yml.\n"


def files() -> dict[Path, str]:
    """Return the text of each file."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    read = {
        name: [one for one in compose[name]["environment"] if one != "POSOLOGY_REDIS_URL"]
        for name in SERVICES
    }
    known = {one for names in read.values() for one in names} - OWN
    secret = known & _secrets()
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    values = schema["properties"]
    values["settings"]["propertyNames"]["enum"] = sorted(known - secret)
    values["secrets"]["propertyNames"]["enum"] = sorted(secret)
    return {
        ENVIRONMENT: _HEAD + yaml.safe_dump(read, sort_keys=False),
        SCHEMA: json.dumps(schema, indent=2) + "\n",
        CHART / "files" / STARTER.name: STARTER.read_text(encoding="utf-8"),
    }


def _secrets() -> set[str]:
    kept = {
        str(field.alias)
        for field in Settings.model_fields.values()
        if SecretStr in getattr(field.annotation, "__args__", ())
    }
    return kept | {name for name in variables() if name.endswith(("_KEY", "_TOKEN_BEDROCK"))}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
