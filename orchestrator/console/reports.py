"""Folder of reports (``POSOLOGY_REPORTS``): folders of `posology eval`, and files of `posology reconcile --out`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from anyio import to_thread
from pydantic import ValidationError

from orchestrator.api.problems import RequestProblem
from orchestrator.evaluation.folder import SUMMARY
from orchestrator.evaluation.forms import EvalOutput
from posology.budget.reconcile.report import ReconcileOutput
from posology.published.base import Published

#: maximum bytes of a report
_BYTES = 8 * 1024 * 1024
#: reports on a page, the newest
MOST = 30
#: parsed reports in memory
_CACHED = 64
_JSON = ".json"

Form = TypeVar("Form", bound=Published)


@dataclass(frozen=True, kw_only=True, slots=True)
class Report(Generic[Form]):
    """A report of the folder."""

    #: name of its folder or file
    name: str
    #: last change
    at: datetime
    #: ``None``: it cannot be read
    out: Form | None
    #: reason why it cannot be read; ``None``: it can
    failed: str | None = None


class Reports:
    """The folder. Names come from requests, so only its own entries are read, and no link out of it.

    Args:
        folder: ``None``: none is configured, so that there are no reports.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else Path(folder).expanduser()

    async def evaluations(self) -> tuple[Report[EvalOutput], ...]:
        """Return the newest evaluations, newest first."""
        return await to_thread.run_sync(self._newest, EvalOutput, _run)

    async def evaluation(self, name: str) -> Report[EvalOutput]:
        """Return an evaluation.

        Raises:
            RequestProblem: the folder has none of that name.
        """
        return await to_thread.run_sync(self._named, EvalOutput, _run, name)

    async def reconciliations(self) -> tuple[Report[ReconcileOutput], ...]:
        """Return the newest reconciliations, newest first."""
        return await to_thread.run_sync(self._newest, ReconcileOutput, _file)

    async def reconciliation(self, name: str) -> Report[ReconcileOutput]:
        """Return a reconciliation.

        Raises:
            RequestProblem: the folder has none of that name.
        """
        return await to_thread.run_sync(self._named, ReconcileOutput, _file, name)

    def _newest(
        self, form: type[Form], of: Callable[[Path], Path | None]
    ) -> tuple[Report[Form], ...]:
        found = []
        for entry in self._entries():
            path = of(entry)
            if path is not None:
                found.append((path.stat().st_mtime_ns, entry.name, path))
        found.sort(reverse=True)
        return tuple(_read(form, name, path) for _, name, path in found[:MOST])

    def _named(
        self, form: type[Form], of: Callable[[Path], Path | None], name: str
    ) -> Report[Form]:
        entry = next((one for one in self._entries() if one.name == name), None)
        path = None if entry is None else of(entry)
        if path is None:
            raise RequestProblem(
                404, "NoReport", "There is no such report",
                f"the folder of POSOLOGY_REPORTS has no report {name[:80]!r}",
            )  # fmt: skip
        return _read(form, name, path)

    def _entries(self) -> list[Path]:
        if self._folder is None:
            return []
        try:
            return [one for one in self._folder.iterdir() if not one.is_symlink()]
        except OSError as error:
            raise RequestProblem(
                503, "NoReports", "The reports cannot be read",
                f"the folder of POSOLOGY_REPORTS: {error.strerror or error}",
            ) from None  # fmt: skip


def _run(entry: Path) -> Path | None:
    """Return the summary of an evaluation's folder; ``None``: it is none."""
    path = entry / SUMMARY
    return path if path.is_file() and not path.is_symlink() else None


def _file(entry: Path) -> Path | None:
    return entry if entry.suffix == _JSON and entry.is_file() else None


def _read(form: type[Form], name: str, path: Path) -> Report[Form]:
    try:
        stat = path.stat()
        at = datetime.fromtimestamp(stat.st_mtime, UTC)
        if stat.st_size > _BYTES:
            return Report(name=name, at=at, out=None, failed=f"it is larger than {_BYTES:,} bytes")
        return Report(name=name, at=at, out=_parsed(form, path, stat.st_mtime_ns, stat.st_size))
    except ValidationError:
        return Report(name=name, at=at, out=None, failed="it has another form or version")
    except OSError as error:
        at = datetime.fromtimestamp(0, UTC)
        return Report(name=name, at=at, out=None, failed=error.strerror or str(error))


@lru_cache(maxsize=_CACHED)
def _parsed(form: type[Form], path: Path, _changed: int, _size: int) -> Form:
    return form.model_validate_json(path.read_bytes())
