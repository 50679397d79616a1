"""The ``policy replay`` command: repeat decisions from the records of jobs."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import IndexOption, JsonOption, TenantOption, errors, fail, print_json
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.jobs.files import STREAM
from orchestrator.cli.jobs.store import with_store
from orchestrator.cli.option_groups import Group, grouped
from orchestrator.cli.policy.options import PromptsOption, QTableOption, with_qtable
from orchestrator.settings import Settings, load_settings

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore
    from orchestrator.question.decisions.forms import ReplayedJob, ReplayOutput
    from orchestrator.question.decisions.replay import Present
    from posology.index.store import Index


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayOptions(Group):
    """Q-table and index of a replay."""

    qtable: QTableOption = None
    prompts: PromptsOption = None
    retrieve: Annotated[
        bool,
        typer.Option("--retrieve", help="Repeat the retrieval, too, and report differences."),
    ] = False
    newest: Annotated[
        bool,
        typer.Option(
            "--newest",
            help="Retrieve from the newest index version instead of the recorded one. Implies --retrieve.",
        ),
    ] = False
    index: IndexOption = None
    show: Annotated[
        int,
        typer.Option("--show", min=1, max=10_000, help="Maximum number of differing jobs to list."),
    ] = 20

    def wanted(self, jobs: tuple[str, ...], batch: str | None, *, as_json: bool) -> _Wanted:
        """Return the parsed command line."""
        settings = with_qtable(load_settings(), self.qtable)
        if self.prompts is not None:
            settings = settings.model_copy(update={"prompts": str(self.prompts)})
        return _Wanted(
            jobs=jobs,
            batch=batch,
            index=self.index or settings.index,
            retrieve=self.retrieve or self.newest,
            newest=self.newest,
            show=self.show,
            as_json=as_json,
            settings=settings,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """Parsed command line."""

    jobs: tuple[str, ...]
    batch: str | None
    index: str | None
    retrieve: bool
    newest: bool
    show: int
    as_json: bool
    settings: Settings


@grouped
def replay(
    jobs: Annotated[
        list[str] | None,
        typer.Argument(metavar="JOB", help="Job ids. -: read them from standard input."),
    ] = None,
    *,
    batch: Annotated[
        str | None, typer.Option("--batch", metavar="ID", help="Replay all jobs of a batch.")
    ] = None,
    options: ReplayOptions,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Repeat the decisions of jobs from their records and report differences. No model is called.

    Exit status 15: a decision differs or cannot be repeated. Exit status 1: some jobs do not exist any more.
    """
    from orchestrator.cli.policy.replay_view import show_replay
    from orchestrator.question.decisions.forms import Replay
    from orchestrator.question.decisions.replay import changed

    if bool(jobs) == (batch is not None):
        raise typer.BadParameter("give either job ids or --batch")
    with errors(as_json=as_json):
        wanted = options.wanted(tuple(jobs or ()), batch, as_json=as_json)
        out = with_store(tenant, lambda store, tenant: _run(store, tenant, wanted))
        if as_json:
            print_json(out)
        elif out.jobs != 1:
            show_replay(Console(), out)
    found = changed(out)
    if found is not None:
        if not as_json:
            fail(found.message)
        raise typer.Exit(found.exit_code)
    if out.counts.get(Replay.MISSING):
        raise typer.Exit(SOME_BAD)


async def _run(store: JobStore, tenant: str, wanted: _Wanted) -> ReplayOutput:
    from orchestrator.cli.policy.replay_view import show_replayed
    from orchestrator.jobs.batches import Batches
    from orchestrator.question.decisions.forms import Replay
    from orchestrator.question.decisions.replay import Replayer, each, of_batch

    started, console = time.perf_counter(), Console()
    printed = 0

    def tell(job: ReplayedJob) -> None:
        nonlocal printed
        # only some of the differing jobs of a batch are listed
        if not wanted.as_json and (wanted.batch is None or job.status is not Replay.SAME):
            printed += 1
            if printed <= wanted.show or wanted.batch is None:
                show_replayed(console, job)

    async with AsyncExitStack() as opened:
        replayer = Replayer(await _present(wanted, opened), show=wanted.show)
        ids: Iterable[str] | AsyncIterator[str] = wanted.jobs
        if wanted.batch is not None:
            ids = of_batch(Batches(store, wanted.settings), wanted.batch, tenant=tenant)
        elif wanted.jobs == (STREAM,):
            ids = (line.split()[0] for line in sys.stdin if line.strip())
        await each(store, ids, replayer, tenant=tenant, tell=tell)
        return replayer.output(time.perf_counter() - started)


async def _present(wanted: _Wanted, opened: AsyncExitStack) -> Present:
    """Open what decides now; models are loaded only for ``--retrieve``."""
    from anyio import to_thread

    from orchestrator.question.decisions.replay import make_present
    from orchestrator.service import open_service

    settings = wanted.settings
    collection = wanted.index if wanted.index in settings.collection_places else None
    if not wanted.retrieve:
        index = await to_thread.run_sync(_opened, wanted.index)
        return await make_present(settings, index, collection=collection)
    service = await opened.enter_async_context(open_service(settings, wanted.index))
    return await make_present(
        settings, service.index, service=service, newest=wanted.newest, collection=collection
    )


def _opened(place: str | None) -> Index | None:
    """Open the index; ``None``: there is none."""
    from orchestrator.service import index_place
    from posology.errors import IndexFault
    from posology.index.store import Index

    if place is None:
        return None
    try:
        return Index.open(index_place(load_settings(), place))
    except IndexFault as error:
        fail(f"{error.message} The replay cannot tell whether the index has changed.")
        return None
