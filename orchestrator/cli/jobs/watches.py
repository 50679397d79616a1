"""``posology watch`` and ``posology watches``: questions that are asked anew when the index has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, TenantOption, errors, print_json
from orchestrator.cli.jobs.store import with_store
from orchestrator.cli.live.options import LiveOptions
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.question_options import QuestionOptions
from orchestrator.settings import load_settings
from orchestrator.watches.request import WatchRequest
from posology.types import WatchState

if TYPE_CHECKING:
    from posology.published.watches.forms import WatchOutput

app = typer.Typer(help="List, inspect, pause, resume and end watches.")

_FACTS = "watch, state, every, next check, last check, last change, asked, fetch, job, error"
WatchArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the watch.")]


class WatchOptions(QuestionOptions):
    """How the question of a watch is answered, and how often it is checked."""

    model = WatchRequest
    names = tuple(
        name
        for name in WatchRequest.model_fields
        if name not in {"question", "live", *WatchRequest.without}
    )

    def fields(self, question: str) -> dict[str, Any]:
        """Return a question and its options as a request; see :meth:`QuestionOptions.fields`."""
        found = super().fields(question)
        every = found.get("every", "")
        return {**found, "every": int(every)} if every.isdecimal() else found


@grouped
def watch(
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="The question. -: standard input.")
    ],
    *,
    tenant: TenantOption = None,
    live: LiveOptions,
    options: WatchOptions,
    as_json: JsonOption = False,
) -> None:
    """Ask a question now, and again when its evidence in the index has changed; tell only of changes.

    With --live, literature is fetched into the index before each check; it needs `posology up --uploads`.
    """
    from orchestrator.watches.store import WatchStore

    with errors(as_json=as_json):
        fields = {**options.fields(question), "live": live.fields()}
        request = WatchRequest.parse(fields).settled(load_settings())

        async def work(store: Any, tenant: str) -> WatchOutput:
            made, _ = await WatchStore(store).create(
                request, request.seconds, tenant=tenant, live=request.live
            )
            return made

        made = with_store(tenant, work)
        if as_json:
            print_json(made)
        else:
            typer.echo(made.id)


@app.command("list")
def list_(*, tenant: TenantOption = None, as_json: JsonOption = False) -> None:
    """List the watches with the time of their next check and of their last change."""
    from orchestrator.cli.output.tables import print_form
    from orchestrator.rendering.forms.columns import table
    from orchestrator.rendering.forms.watches import WATCHES
    from orchestrator.watches.store import WatchStore
    from posology.published.watches.forms import WatchList

    with errors(as_json=as_json):
        found = with_store(tenant, lambda store, tenant: WatchStore(store).all(tenant=tenant))
        if as_json:
            print_json(WatchList(watches=found))
        else:
            listed = table(WATCHES, found, "watch, state, next check, last change, question")
            print_form(Console(), listed)


@app.command()
def show(watch: WatchArgument, *, tenant: TenantOption = None, as_json: JsonOption = False) -> None:
    """Show a watch with its last answer and its changes, newest first."""
    from orchestrator.watches.store import WatchStore

    with errors(as_json=as_json):
        _show(
            with_store(tenant, lambda store, tenant: WatchStore(store).get(watch, tenant=tenant)),
            as_json=as_json,
        )


@app.command()
def pause(
    watch: WatchArgument, *, tenant: TenantOption = None, as_json: JsonOption = False
) -> None:
    """Pause a watch: it is not checked until it is resumed."""
    _turn(watch, WatchState.PAUSED, tenant, as_json=as_json)


@app.command()
def resume(
    watch: WatchArgument, *, tenant: TenantOption = None, as_json: JsonOption = False
) -> None:
    """Resume a paused watch; a missed check is made at once."""
    _turn(watch, WatchState.ACTIVE, tenant, as_json=as_json)


@app.command()
def end(watch: WatchArgument, *, tenant: TenantOption = None, as_json: JsonOption = False) -> None:
    """End a watch. Its record expires in 7 days."""
    _turn(watch, WatchState.ENDED, tenant, as_json=as_json)


def _turn(watch: str, state: WatchState, tenant: str | None, *, as_json: bool) -> None:
    from orchestrator.watches.store import WatchStore

    with errors(as_json=as_json):
        _show(
            with_store(
                tenant,
                lambda store, tenant: WatchStore(store).turn(watch, state, tenant=tenant),
            ),
            as_json=as_json,
        )


def _show(watch: WatchOutput, *, as_json: bool) -> None:
    if as_json:
        print_json(watch)
        return
    from orchestrator.cli.output.tables import print_facts, print_form
    from orchestrator.rendering.forms.columns import facts, table
    from orchestrator.rendering.forms.watches import CHANGES, WATCHES, last

    console = Console()
    rows = [*facts(WATCHES, watch, _FACTS), *last(watch)]
    print_facts(console, rows, title=watch.question)
    if watch.changes:
        print_form(console, table(CHANGES, watch.changes))
