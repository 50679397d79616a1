"""``posology sync`` and ``posology index versions``, as a program and as a person sees them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from posology.errors import BadFile, IndexFault, SyncRefused
from tests.support.pubmed_files import Citation, name, write

SCHEMAS = Path(__file__).resolve().parents[3] / "docs" / "schema"
RUNNER = CliRunner()
Cli = Callable[..., Result]


@pytest.fixture
def cli(tmp_path: Path, tiny_encoder: Path) -> Cli:
    def run(*arguments: str) -> Result:
        environment = {
            "POSOLOGY_INDEX": str(tmp_path / "index"),
            "POSOLOGY_EMBEDDER": str(tiny_encoder),
            "COLUMNS": "200",
        }
        return RUNNER.invoke(app, list(arguments), env=environment)

    return run


def published(result: Result, kind: str) -> dict[str, Any]:
    out: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(out, json.loads((SCHEMAS / f"{kind}.json").read_text(encoding="utf-8")))
    return out


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_folder_is_kept_current_and_old_versions_are_read(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "pubmed"
    write(folder, 1, [Citation(pmid=1, text="Aspirin lowered the risk of stroke in adults.")])
    first = cli("sync", str(folder))
    assert first.exit_code == 0, first.output
    assert f"{name(1)}: 1 records, 0 deletions, 0 notices, 0 bad" in first.stdout
    assert "index@" in first.stdout
    assert "nothing to do" in cli("sync", str(folder)).stdout

    old = published(cli("index", "info", "--json"), "index")
    assert (old["files"], old["last_file"], old["unfinished"]) == (1, name(1), [])
    retracting = Citation(pmid=9, text="We retract it.", retracts=(1,))
    write(folder, 2, [retracting, Citation(pmid=2, text="")])
    both = cli("sync", str(folder), "--workers", "2", "--distributed")
    assert both.exit_code == 2
    assert "--distributed" in both.stderr
    second = cli("sync", str(folder), "--json")
    assert second.exit_code == 1
    out = published(second, "sync")
    assert [(f["name"], f["notices"], f["bad"]) for f in out["applied"]] == [(name(2), 1, 1)]
    assert (out["done"], out["ingest"]["warned"]) == (1, 1)
    assert [bad["record"] for bad in out["ingest"]["bad_records"]] == ["pmid:2"]

    versions = published(cli("index", "versions", "--json"), "versions")["versions"]
    assert [(v["passages"], v["retracted"]) for v in versions] == [(0, 0), (1, 0), (2, 1)]
    assert versions[-1] == versions[-1] | {"index": out["index"], "until": None}
    assert old["version"] == versions[1]["index"]
    assert out["index"] in cli("index", "versions").stdout
    number = str(versions[1]["number"])
    found = published(cli("search", "aspirin", "--index-version", number, "--json"), "search")
    assert (found["index"], [hit["passage"]["id"] for hit in found["hits"]]) == (
        old["version"],
        ["pmid:1"],
    )
    answer = published(cli("ask", "Does aspirin help?", "--index-version", number, "--json"), "ask")
    assert answer["index"] == old["version"]
    assert answer["decision"]["versions"]["index"] == old["version"]
    gone = cli("search", "aspirin", "--index-version", "99", "--json")
    assert gone.exit_code == IndexFault.exit_code
    assert published(gone, "error")["error"]["details"] == {
        "index": "index",
        "version": 99,
        "days": 30,
    }
    write(folder, 5, [Citation(pmid=5, text="Later.")])
    refused = cli("sync", str(folder))
    assert refused.exit_code == SyncRefused.exit_code
    assert "--allow-gaps" in refused.stderr


def test_no_index_is_made_for_a_folder_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    refused = cli("sync", str(tmp_path / "nowhere"))
    assert refused.exit_code == BadFile.exit_code, refused.output
    assert "no such folder" in refused.stderr
    assert not (tmp_path / "index").exists()


def test_a_refusal_and_a_dry_run_make_no_index(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "pubmed"
    write(folder, 1, [Citation(pmid=1, text="Aspirin helps.")])
    write(folder, 3, [Citation(pmid=3, text="Aspirin helps.")])
    for more in ((), ("--rebuild",)):
        for dry in ((), ("--dry-run",)):
            refused = cli("sync", str(folder), *more, *dry)
            assert refused.exit_code == SyncRefused.exit_code
            assert name(2) in refused.stderr
        told = cli("sync", str(folder), *more, "--allow-gaps", "--dry-run", "--json")
        assert told.exit_code == 0, told.output
        out = published(told, "prospect")
        assert (out["files"], out["missing"]) == ([name(1), name(3)], [name(2)])
        assert (out["index"], out["vectors"], out["done"]) == (None, None, 0)
        assert (out["rebuild"] is None) is not bool(more)
    said = cli("sync", str(folder), "--allow-gaps", "--dry-run", "--rebuild")
    assert "1 file" in said.stderr
    assert "2 new, 0 changed" in said.stdout
    assert "no cost" in said.stderr
    assert not (tmp_path / "index").exists()


@pytest.mark.timeout(600)
def test_the_next_year_s_baseline_is_told_first_and_then_applied(cli: Cli, tmp_path: Path) -> None:
    old, new = tmp_path / "2026", tmp_path / "2027"
    write(old, 1, [Citation(pmid=n, text=f"Aspirin helps {n}.") for n in range(1, 13)])
    assert cli("sync", str(old)).exit_code == 0
    notes = tmp_path / "notes.jsonl"
    notes.write_text('{"id": "n", "text": "A note."}')
    assert cli("ingest", str(notes)).exit_code == 0
    write(new, 1, [Citation(pmid=n, text=f"Aspirin helps {n}.") for n in range(1, 12)], year=27)
    refused = cli("sync", str(new))
    assert refused.exit_code == SyncRefused.exit_code
    assert "--rebuild" in refused.stderr
    unlikely = cli("sync", str(new), "--rebuild", "--publish-each")
    assert unlikely.exit_code == 2
    too_much = cli("sync", str(new), "--rebuild", "--yes")
    assert too_much.exit_code == SyncRefused.exit_code
    assert "--allow-removals" in too_much.stderr
    going = ("sync", str(new), "--rebuild", "--allow-removals")
    told = published(cli(*going, "--dry-run", "--json"), "prospect")
    assert told["rebuild"] == {
        "passages": 11,
        "new": 0,
        "changed": 0,
        "unchanged": 11,
        "removed": 2,
        "published": 13,
        "forgotten": [name(1)],
        "ingested": [str(notes.resolve())],
    }
    done = cli(*going)
    assert done.exit_code == 0, done.output
    assert "2 of 13 passages" in done.stderr
    assert "posology ingest" in done.stderr
    assert name(1) in done.stderr
    assert "index@" in done.stdout
    again = published(cli(*going, "--json"), "sync")
    assert (again["applied"], again["done"]) == ([], 1)
    assert published(cli("index", "info", "--json"), "index")["last_file"] == name(1, 27)


@pytest.mark.timeout(600)
def test_a_rebuild_without_anything_to_do_says_why_it_ends_with_1(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "2026"
    write(folder, 1, [Citation(pmid=1, text="Aspirin helps."), Citation(pmid=2, text="")])
    assert cli("sync", str(folder)).exit_code == 1
    idle = cli("sync", str(folder), "--rebuild")
    assert idle.exit_code == 1
    assert "nothing to do" in idle.stdout
    assert "pmid:2" in idle.stderr
