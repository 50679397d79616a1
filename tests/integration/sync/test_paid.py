"""Vectors that are bought for a rebuild: what is told before is what is bought."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from posology.testing import StubProvider, Vectors
from tests.support.pubmed_files import Citation, write


@pytest.mark.timeout(600)
def test_a_rebuild_buys_what_it_said_and_nothing_that_is_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "pubmed"
    # the second file revises what the first holds: only what stands at the end is bought
    write(folder, 1, [Citation(pmid=n, text=f"Aspirin helps {n} times.") for n in range(1, 13)])
    write(folder, 2, [Citation(pmid=1, text="It does not help.")])
    with StubProvider(lambda _: Vectors()) as stub:

        def run(*arguments: str, memory: str) -> dict[str, Any]:
            environment = {
                "POSOLOGY_INDEX": str(tmp_path / "index"),
                "POSOLOGY_EMBEDDER": "openai:text-embedding-3-small@64",
                "POSOLOGY_HOME": str(tmp_path / "home"),
                "POSOLOGY_MEMORY": str(tmp_path / memory),
                "OPENAI_API_KEY": "sk-test",
                "OPENAI_BASE_URL": stub.openai_url,
            }
            result = CliRunner().invoke(app, ["sync", str(folder), *arguments], env=environment)
            assert result.exit_code == 0, result.output
            out: dict[str, Any] = json.loads(result.stdout)
            return out

        told = run("--rebuild", "--dry-run", "--json", memory="a.sqlite")
        assert stub.requests == ()
        assert not (tmp_path / "index").exists()
        assert (told["rebuild"]["new"], told["vectors"]["passages"]) == (12, 12)
        first = run("--rebuild", "--json", memory="a.sqlite")
        assert first["ingest"]["written"] == 12
        spent = Decimal(first["ingest"]["spent_usd"])
        assert 0 < spent <= Decimal(told["vectors"]["worst_usd"])
        # nothing is remembered of what was bought: the index alone says what need not be
        free = run("--rebuild", "--dry-run", "--json", memory="b.sqlite")
        assert (free["rebuild"]["unchanged"], free["vectors"]["passages"]) == (12, 0)
        write(folder, 2, [Citation(pmid=1, text="It does help."), Citation(pmid=40, text="New.")])
        more = run("--rebuild", "--dry-run", "--json", memory="b.sqlite")
        assert more["vectors"]["passages"] == 2
        sent = len(stub.requests)
        second = run("--rebuild", "--json", memory="b.sqlite")
        assert (second["ingest"]["written"], second["ingest"]["unchanged"]) == (2, 11)
        assert len(stub.requests) - sent == more["vectors"]["calls"]
        assert 0 < Decimal(second["ingest"]["spent_usd"]) <= Decimal(more["vectors"]["worst_usd"])
