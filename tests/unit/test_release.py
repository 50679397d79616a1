"""What a release checks: its packages, their licences and its sums."""

from __future__ import annotations

import json
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from deploy.release import packages
from deploy.release.build import TOOLS, sums
from deploy.release.packages import LICENCES, ROOT, Package, needed, refused
from posology.version import __version__
from tests.stored.dump import FOLDER


def one(licence: str, name: str = "some") -> Package:
    return Package(name=name, version="1", licence=licence)


def test_the_packages_are_those_that_users_install() -> None:
    found, missing = needed()
    names = {one.name for one in found} | set(missing)
    # of Posology, of an extra, of an extra's extra, and of a package of ours
    assert names >= {"lancedb", "psycopg", "psycopg-binary", "mcp", "numpy", "typing-extensions"}
    assert not names & {"pytest", "ruff", "mypy", "mkdocs-material", "posology"}
    assert len(names) == len(found) + len(missing)


def test_records_and_forms_of_this_version_are_stored_for_the_next_ones() -> None:
    """``CONTRIBUTING.md`` says how they are made."""
    minor = __version__.rpartition(".")[0]
    assert [*FOLDER.glob(f"{minor}.*.jsonl")]
    assert [*FOLDER.glob(f"{minor}.*-forms.txt")]


def test_licences_of_all_packages_are_allowed() -> None:
    assert refused(needed()[0]) == []


def test_every_exception_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = LICENCES.read_text(encoding="utf-8")
    listed = text[text.index("[packages]") :].splitlines()[1:]
    without = tmp_path / "licences.toml"
    without.write_text(text[: text.index("[packages]")] + "[packages]\n")
    monkeypatch.setattr(packages, "LICENCES", without)
    names = [line.partition(" ")[0].strip('"') for line in listed if line]
    # patterns are of packages for GPUs, which are not everywhere
    patterns = [name for name in names if "*" in name]
    found = [
        one.name
        for one in refused(needed()[0])
        if not any(fnmatch(one.name, each) for each in patterns)
    ]
    assert sorted(name for name in names if "*" not in name) == found


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True), ("MIT OR GPL-3.0-only", True), ("MIT AND GPL-3.0-only", False), ("", False),
        ("Apache-2.0 WITH LLVM-exception AND (MIT)", True), ("AGPL-3.0-only", False),
        ("Dual License", False),
    ],
)  # fmt: skip
def test_a_licence_is_allowed_by_its_parts(licence: str, *, allowed: bool) -> None:
    assert (refused([one(licence)]) == []) is allowed


def test_an_accepted_package_may_have_another_licence() -> None:
    assert refused([one("LGPL-3.0-only", "psycopg"), one("LGPL-3.0-only", "other")]) == [
        one("LGPL-3.0-only", "other")
    ]


def test_the_sums_are_what_sha256sum_reads(tmp_path: Path) -> None:
    for name in ("b.whl", "a.tar.gz"):
        (tmp_path / name).write_text(name)
    sums(tmp_path)
    sums(tmp_path)
    done = subprocess.run(
        ["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "a.tar.gz: OK\nb.whl: OK\n"


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_the_bill_of_materials_has_the_packages_of_a_release() -> None:
    if not (TOOLS / "bin" / "cyclonedx-py").exists():
        pytest.skip("the tools of `make release` are not installed")
    code = (
        "import json; from deploy.release.build import *; print(json.dumps(materials(needed()[0])))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    found = json.loads(done.stdout)
    assert found["bomFormat"] == "CycloneDX"
    assert found["metadata"]["component"]["name"] == "posology"
    names = {packages.normalised(part["name"]) for part in found["components"]}
    assert names == {part.name for part in needed()[0]}
