"""Views of syncs, indices and their versions: as published data, and as text."""

from __future__ import annotations

from dataclasses import asdict
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cli.index.forms import (
    BadItem,
    FileOutput,
    IndexOutput,
    ProspectOutput,
    SyncOutput,
    VectorsOutput,
    VersionOutput,
    VersionsOutput,
    ingest_output,
)
from orchestrator.cli.output.tables import print_form, print_line
from orchestrator.cli.terminal import show_ingest
from orchestrator.rendering.forms.columns import table_of

if TYPE_CHECKING:
    from orchestrator.ingest.embedding import IngestEstimate
    from orchestrator.ingest.sync import SyncForecast
    from posology.index.store import Index
    from posology.index.sync.rebuilt import Rebuilt
    from posology.index.sync.report import SyncReport

#: files listed by name
_SHOWN = 20


def sync_output(report: SyncReport) -> SyncOutput:
    """Return the published form of a sync's report."""
    return SyncOutput(
        applied=tuple(map(FileOutput.of, report.applied)),
        again=report.plan.again,
        revised=report.plan.revised,
        missing=report.plan.missing,
        waiting=report.waiting,
        done=report.plan.done,
        index=report.index,
        ingest=ingest_output(report.ingest),
        seconds=report.seconds,
        rebuild=report.rebuilt,
    )


def prospect_output(forecast: SyncForecast) -> ProspectOutput:
    """Return the published form of what a sync will do."""
    return ProspectOutput(
        files=tuple(file.name for file in forecast.plan.files),
        again=forecast.plan.again,
        revised=forecast.plan.revised,
        missing=forecast.plan.missing,
        waiting=forecast.waiting,
        bad_files=tuple(map(BadItem.of, forecast.broken)),
        done=forecast.plan.done,
        index=forecast.index,
        rebuild=forecast.rebuilt,
        vectors=None if forecast.vectors is None else _vectors(forecast.vectors),
    )


def _vectors(found: IngestEstimate) -> VectorsOutput:
    return VectorsOutput(
        embedder=found.embedder,
        tenant=found.tenant,
        passages=found.passages,
        calls=found.calls,
        input_tokens=found.input,
        expected_usd=found.dollars.expected,
        worst_usd=found.dollars.worst,
        cap_usd=found.cap,
        left_usd=dict(found.left),
    )


def info_output(index: Index) -> IndexOutput:
    """Return the published form of an index's facts. Blocking."""
    from orchestrator.ingest.contents import contents_of

    return IndexOutput.model_validate(asdict(index.info()) | asdict(contents_of(index)))


def versions_output(index: Index) -> VersionsOutput:
    """Return the readable versions of an index. Blocking."""
    known = index.versions()
    until = [one.at + index.keep for one in known[1:]]
    versions = []
    for one, end in zip_longest(known, until):
        view = index.view_at(one.number)
        versions.append(
            VersionOutput(
                index=view.version,
                number=one.number,
                published=one.at.isoformat(timespec="seconds"),
                until=None if end is None else end.isoformat(timespec="seconds"),
                passages=view.count(),
                retracted=view.retracted,
            )
        )
    return VersionsOutput(versions=tuple(versions))


def show_sync(console: Console, errors: Console, out: SyncOutput) -> None:
    """Print what was applied; faults go to ``errors``."""
    _show_files(errors, out)
    for file in out.applied[-_SHOWN:]:
        broken = f"; {file.broken}" if file.broken else ""
        print_line(
            console,
            f"{file.name}: {file.records:,} records, {file.deletions:,} deletions, "
            f"{file.notices:,} notices, {file.bad:,} bad{broken}",
        )
    if len(out.applied) > _SHOWN:
        console.print(f"… and {len(out.applied) - _SHOWN:,} earlier files")
    if out.applied or out.ingest.bad_files:
        show_ingest(console, errors, out.ingest)
        console.print(
            f"{out.ingest.removed:,} passages removed; marks of retraction or concern changed for "
            f"{out.ingest.warned:,}"
        )
        if out.rebuild is not None:
            _show_rebuild(console, errors, out.rebuild, done=True)
        print_line(console, f"{len(out.applied):,} files applied; published {out.index}")
    else:
        if out.ingest.bad or out.ingest.remarked:
            # a rebuild reads all records, even if there is nothing to do
            show_ingest(console, errors, out.ingest)
        print_line(
            console, f"nothing to do: {out.done:,} files are already applied; published {out.index}"
        )


def show_prospect(console: Console, errors: Console, out: ProspectOutput) -> None:
    """Print what would be done; faults go to ``errors``."""
    _show_files(errors, out)
    for one in out.bad_files:
        print_line(errors, f"{one.path}: {one.reason}", "red")
    for name in () if out.waiting else out.files[-_SHOWN:]:
        print_line(console, f"would apply {name}")
    if len(out.files) > _SHOWN and not out.waiting:
        console.print(f"… and {len(out.files) - _SHOWN:,} earlier files")
    if out.rebuild is not None:
        _show_rebuild(console, errors, out.rebuild, done=False)
    if not out.files:
        console.print(f"nothing to do: {out.done:,} files are already applied")


def _show_files(errors: Console, out: SyncOutput | ProspectOutput) -> None:
    if out.missing:
        count = len(out.missing)
        gone = "; the index lacks the records that only they hold"
        print_line(
            errors,
            f"{count:,} {'file is' if count == 1 else 'files are'} missing{gone}:",
            "bold red",
        )
    for names, state in (
        (out.missing, "is missing from the folder"),
        (out.revised, "has changed: it and all later files are applied again"),
        (out.waiting, "is not applied: it, or a file before it, cannot be read"),
    ):
        for name in names[:_SHOWN]:
            print_line(errors, f"{name} {state}", "yellow")
        if len(names) > _SHOWN:
            print_line(errors, f"… and {len(names) - _SHOWN:,} more", "yellow")


def _show_rebuild(console: Console, errors: Console, out: Rebuilt, *, done: bool) -> None:
    console.print(
        f"{out.passages:,} passages in the files: {out.new:,} new, {out.changed:,} changed, "
        f"{out.unchanged:,} unchanged"
    )
    if out.removed:
        verb = "were removed" if done else "would be removed"
        print_line(
            errors,
            f"{out.removed:,} of {out.published:,} passages {verb}: none of the files holds them",
            "yellow",
        )
    for names, how in ((out.forgotten, "applied"), (out.ingested, "read by `posology ingest`")):
        for path in names[:_SHOWN]:
            gone = (
                f"{path} was {how} and is not in the folder: records that only it holds are dropped"
            )
            print_line(errors, gone, "yellow")
        if len(names) > _SHOWN:
            print_line(errors, f"… and {len(names) - _SHOWN:,} more", "yellow")


def show_versions(console: Console, out: VersionsOutput) -> None:
    """Print the readable versions, oldest first."""
    texts = "version, published (UTC), readable until (UTC)"
    rows = (
        (
            *(one.index, _minute(one.published), _minute(one.until) if one.until else "newest"),
            *(one.passages, one.retracted),
        )
        for one in out.versions
    )
    print_form(console, table_of(f"{texts}, passages, retracted", rows, texts=texts))


def _minute(moment: str) -> str:
    """Return an ISO 8601 time to the minute, for narrow terminals."""
    return moment[:16].replace("T", " ")
