"""What a sync did, and which versions of an index there are: as data, and for people."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.output import ingest_output
from orchestrator.terminal import safe, show_ingest
from posology.published.tools import FileOutput, SyncOutput, VersionOutput, VersionsOutput

if TYPE_CHECKING:
    from posology.index.store import Index
    from posology.index.sync_report import SyncReport

#: files that are listed one by one
_SHOWN = 20


def sync_output(report: SyncReport) -> SyncOutput:
    """The published form of a sync's report."""
    return SyncOutput(
        applied=tuple(
            FileOutput.model_validate(
                {name: getattr(file, name) for name in FileOutput.model_fields}
            )
            for file in report.applied
        ),
        again=report.plan.again,
        revised=report.plan.revised,
        missing=report.plan.missing,
        waiting=report.waiting,
        done=report.plan.done,
        index=report.index,
        ingest=ingest_output(report.ingest),
        seconds=report.seconds,
    )


def versions_output(index: Index) -> VersionsOutput:
    """The versions of an index that can be read. Blocking."""
    known = index.versions()
    until = [one.at + index.keep for one in known[1:]]
    found = []
    for one, end in zip_longest(known, until):
        view = index.view_at(one.number)
        found.append(
            VersionOutput(
                index=view.version,
                number=one.number,
                published=one.at.isoformat(timespec="seconds"),
                until=None if end is None else end.isoformat(timespec="seconds"),
                passages=view.count(),
                retracted=view.retracted,
            )
        )
    return VersionsOutput(versions=tuple(found))


def show_sync(console: Console, errors: Console, out: SyncOutput) -> None:
    """What was applied; what is wrong goes to ``errors``."""
    for names, said in (
        (out.missing, "is missing in the folder"),
        (out.revised, "is another file than before: it and all after it were applied again"),
        (out.waiting, "waits: a file that cannot be read stands before it, or is it"),
    ):
        for name in names:
            errors.print(Text(safe(f"{name} {said}"), style="yellow"), soft_wrap=True)
    for file in out.applied[-_SHOWN:]:
        broken = f"; {file.broken}" if file.broken else ""
        console.print(
            Text(
                safe(
                    f"{file.name}: {file.records:,} records, {file.deletions:,} deletions, "
                    f"{file.notices:,} notices, {file.bad:,} bad{broken}"
                )
            ),
            soft_wrap=True,
        )
    if len(out.applied) > _SHOWN:
        console.print(f"… and {len(out.applied) - _SHOWN:,} files before these")
    if out.applied or out.ingest.bad_files:
        show_ingest(console, errors, out.ingest)
        console.print(
            f"{out.ingest.removed:,} passages removed; {out.ingest.warned:,} marked as retracted or of "
            "concern, or not any more"
        )
        console.print(Text(safe(f"{len(out.applied):,} files applied; readers see {out.index}")))
    else:
        console.print(
            Text(safe(f"nothing to do: {out.done:,} files are applied; readers see {out.index}"))
        )


def show_versions(console: Console, out: VersionsOutput) -> None:
    """The versions that can be read, oldest first."""
    table = Table("version", "published (UTC)", "kept until (UTC)", "passages", "retracted")
    for one in out.versions:
        table.add_row(
            Text(safe(one.index)),
            _minute(one.published),
            _minute(one.until) if one.until else "it is replaced",
            f"{one.passages:,}",
            f"{one.retracted:,}",
        )
    console.print(table)


def _minute(moment: str) -> str:
    """A moment of ISO 8601 to the minute, so that it fits into a narrow terminal."""
    return moment[:16].replace("T", " ")
