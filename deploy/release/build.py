"""Builds a release into ``dist``: ``python -m deploy.release.build``, which ``make release`` calls.

The wheel and the sdist, a bill of materials (CycloneDX) of all packages that they need, and ``SHA256SUMS`` of these
files. Licences are checked against ``licences.toml``, and versions against public advisories by ``pip-audit``.
Exit status 1: a licence is not allowed, or an advisory concerns a package.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deploy.release.packages import ROOT, Package, needed, normalised, refused
from posology.version import __version__

#: environment of the tools
TOOLS = ROOT / "build" / "release"
_REQUIREMENTS = Path(__file__).resolve().parent / "requirements.txt"


def main() -> None:
    """Check, build and write the sums."""
    packages, missing = needed()
    if missing:
        print(f"not installed here, so neither checked nor listed: {', '.join(missing)}")
    if wrong := refused(packages):
        for one in wrong:
            print(f"licence of {one.name} {one.version} is not allowed: {one.licence or 'none'}")
        sys.exit(1)
    print(f"licences: {len(packages)} packages are allowed")
    tools()
    vulnerable = audit(packages)
    folder = ROOT / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    distributions(folder)
    bill = folder / f"posology-{__version__}.cdx.json"
    bill.write_text(json.dumps(materials(packages), indent=2) + "\n", encoding="utf-8")
    print(f"bill of materials: {bill.relative_to(ROOT)}")
    sums(folder)
    print(
        "images: no digest is pinned by a release; give those that you tested (REDIS_IMAGE, image.digest)"
    )
    if vulnerable:
        sys.exit(1)


def tools() -> None:
    """Set up the environment of the tools, once for their versions."""
    done = TOOLS / "requirements.txt"
    if done.exists() and done.read_bytes() == _REQUIREMENTS.read_bytes():
        return
    shutil.rmtree(TOOLS, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(TOOLS)])
    _run([str(TOOLS / "bin" / "pip"), "install", "--quiet", "--requirement", str(_REQUIREMENTS)])
    shutil.copy(_REQUIREMENTS, done)


def distributions(folder: Path) -> None:
    """Build the wheel and the sdist, with the time of the commit in their archives."""
    time = _run(["git", "log", "-1", "--format=%ct"]).strip()
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    _run(command, environment={"SOURCE_DATE_EPOCH": time})
    for path in sorted(folder.iterdir()):
        print(f"built: {path.relative_to(ROOT)}, {path.stat().st_size:,} bytes")


def materials(packages: Sequence[Package]) -> dict[str, Any]:
    """Return the bill of materials of this environment, without the packages that a release does not need."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.json"
        _run([str(TOOLS / "bin" / "cyclonedx-py"), "environment", "--output-reproducible", "--pyproject", "pyproject.toml",
              "--output-file", str(path), sys.executable])  # fmt: skip
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names = {one.name for one in packages}
    found["components"] = [one for one in found["components"] if normalised(one["name"]) in names]
    root = found["metadata"]["component"]
    kept = {one["bom-ref"] for one in found["components"]} | {root["bom-ref"]}
    found["dependencies"] = [
        {**one, "dependsOn": [ref for ref in one.get("dependsOn", ()) if ref in kept]}
        for one in found["dependencies"]
        if one["ref"] in kept
    ]
    return found


def audit(packages: Sequence[Package]) -> bool:
    """Compare versions with public advisories; return whether one concerns us. Unreachable advisories are told."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "requirements.txt"
        # a local version, as in 2.13.0+cpu, is in no list
        lines = [f"{one.name}=={one.version.partition('+')[0]}\n" for one in packages]
        path.write_text("".join(lines), encoding="utf-8")
        command = [str(TOOLS / "bin" / "pip-audit"), "--requirement", str(path), "--no-deps", "--disable-pip",
                   "--progress-spinner", "off", "--format", "json"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (done.stderr.strip() or "no output").splitlines()[-1]
        print(f"advisories: SKIPPED, they could not be read ({reason})")
        return False
    skipped = [one["skip_reason"] for one in found if "skip_reason" in one]
    if len(skipped) == len(found):
        print(f"advisories: SKIPPED, no package could be looked up (first: {skipped[0]})")
        return False
    known = [
        (one["name"], one["version"], bad["id"]) for one in found for bad in one.get("vulns", ())
    ]
    for name, version, advisory in known:
        print(f"advisory {advisory} concerns {name} {version}")
    print(f"advisories: {len(found)} packages, {len(skipped)} not found, {len(known)} concern one")
    return bool(known)


def sums(folder: Path) -> None:
    """Write the digests of all files, in the form of ``sha256sum``."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.iterdir())
        if path.name != "SHA256SUMS"
    ]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def _run(command: Sequence[str], *, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{command[0]} failed with status {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
