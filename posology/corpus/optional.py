"""Readers whose package is an optional dependency."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from posology.corpus import decoding
from posology.corpus.drafts import Draft, counted, placed
from posology.corpus.items import Item
from posology.errors import ReaderUnavailable


@dataclass(frozen=True, kw_only=True, slots=True)
class OptionalReader:
    """Reads files of one article each through an optional package."""

    #: yields the article of a file
    drafts: Callable[[Path], Iterator[Draft]]
    #: name to import
    module: str
    #: name to install
    package: str
    #: extra of Posology that installs it
    extra: str
    #: what needs it, e.g. ``PDF files``
    files: str

    def require(self) -> None:
        """Check that the package is installed.

        Raises:
            ReaderUnavailable: it is not.
        """
        decoding.require(self.module, package=self.package, extra=self.extra, files=self.files)

    def read(self, path: Path, *, after: int = 0) -> Iterator[Item]:
        """Return the items of a file; see :mod:`posology.corpus.items`.

        Raises:
            ReaderUnavailable: the package is not installed.
        """
        self.require()
        return placed(self.drafts(path), path=path, after=after)

    def count(self, path: Path) -> int:
        """Return the number of passages; 0 if the package is not installed."""
        try:
            self.require()
        except ReaderUnavailable:
            return 0
        return counted(self.drafts(path))
