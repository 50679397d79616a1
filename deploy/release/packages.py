"""The packages that a release needs, with all extras but those for development, and their licences."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
LICENCES = Path(__file__).resolve().parent / "licences.toml"
#: extras that nobody who runs Posology installs
_DEVELOPMENT = frozenset({"dev", "docs"})
#: names in classifiers and free text → SPDX
_SPDX: Mapping[str, str] = {
    "apache software license": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache 2.0 license": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "bsd license": "BSD-3-Clause",
    "bsd": "BSD-3-Clause",
    "new bsd": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """An installed package."""

    #: normalised, e.g. ``python-dateutil``
    name: str
    version: str
    #: SPDX expression, or the words of the metadata; empty: none
    licence: str


def normalised(name: str) -> str:
    """Return a name as package indices compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed() -> tuple[list[Package], list[str]]:
    """Return the packages of a release, and the names of those that are not installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    first = [*project["dependencies"]]
    first += [one for name, some in extras.items() if name not in _DEVELOPMENT for one in some]
    seen: dict[str, set[str]] = {}
    missing: set[str] = set()
    left = [Requirement(one) for one in first]
    while left:
        asked = left.pop()
        if asked.marker is not None and not asked.marker.evaluate({"extra": ""}):
            continue
        name, wanted = normalised(asked.name), {"", *asked.extras}
        if wanted <= seen.get(name, set()):
            continue
        seen.setdefault(name, set()).update(wanted)
        try:
            required = distribution(name).requires or ()
        except PackageNotFoundError:
            missing.add(name)
            continue
        left += _chosen(required, wanted)
    found = [_package(name) for name in sorted(seen.keys() - missing)]
    return found, sorted(missing)


def _chosen(required: Iterable[str], extras: Iterable[str]) -> list[Requirement]:
    """Return the requirements that hold with some extras, without their markers."""
    found: list[Requirement] = []
    for text in required:
        one = Requirement(text)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras):
            one.marker = None
            found.append(one)
    return found


def _package(name: str) -> Package:
    found = metadata(name)
    (licence,) = found.get_all("License-Expression", [""])
    if not licence:
        told = [one for one in found.get_all("Classifier", []) if one.startswith("License ::")]
        names = {_spdx(one.rpartition(" :: ")[2]) for one in told} - {"OSI Approved"}
        # the text of a licence begins with its name
        text = str(*found.get_all("License", [""])).strip().partition("\n")[0].strip()
        licence = " OR ".join(sorted(names)) or _spdx(text)
    return Package(name=name, version=found["Version"], licence=licence)


def _spdx(words: str) -> str:
    return _SPDX.get(words.lower(), words)


def refused(packages: Iterable[Package]) -> list[Package]:
    """Return the packages whose licence is not allowed."""
    listed = tomllib.loads(LICENCES.read_text(encoding="utf-8"))
    allowed, accepted = set(listed["allowed"]), listed["packages"]
    return [
        one
        for one in packages
        if not any(fnmatch(one.name, name) for name in accepted) and not _may(one.licence, allowed)
    ]


def _may(expression: str, allowed: set[str]) -> bool:
    """Whether a licence is allowed: all parts of AND, or one of OR."""
    plain = expression.replace("(", "").replace(")", "").replace("/", " OR ")
    parts = [one.split(" AND ") for one in plain.split(" OR ")]
    return any(all(_known(name, allowed) for name in some) for some in parts)


def _known(name: str, allowed: set[str]) -> bool:
    # an exception only adds rights
    return name.strip().partition(" WITH ")[0] in allowed
