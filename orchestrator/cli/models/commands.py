"""``posology models``: what language models can do and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import BaseUrlOption, JsonOption, TenantOption, errors, print_json, run
from posology.errors import ConfigurationError

if TYPE_CHECKING:
    from orchestrator.cli.models.forms import ModelCheck

app = typer.Typer(
    help="Show what language models can do and cost, and check them.", rich_markup_mode=None
)


@app.command("list")
def list_models(*, as_json: JsonOption = False) -> None:
    """List the models with a known price and known capabilities, cheapest first."""
    from datetime import UTC, datetime

    from orchestrator.cli.models.forms import ModelList
    from orchestrator.cli.models.view import model_output, print_models
    from orchestrator.prices import price_book
    from orchestrator.settings import load_settings
    from posology.budget.prices.book import listed_models
    from posology.llm.models.families import capabilities
    from posology.llm.models.names import parse

    with errors(as_json=as_json):
        settings = load_settings()
        prices, today = price_book(settings), datetime.now(tz=UTC).date()
        models = []
        for model in map(parse, listed_models()):
            family = capabilities(str(model))
            off = family.retirement(model.name)
            # a list of what can answer: embedding models write nothing, and variants have names of their own
            if family.output is None or ":" in model.name or (off is not None and off <= today):
                continue
            models.append(model_output(model, settings, prices))
        models.sort(key=lambda one: (one.model.partition(":")[0], one.input_usd_per_million or 0))
        if as_json:
            print_json(ModelList(models=tuple(models)))
        else:
            print_models(Console(), tuple(models), today)


@app.command("show")
def show(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Model: provider:NAME. Default: POSOLOGY_MODEL."),
    ] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Show all that is known of a model, and what Posology sends to it.

    No request is made. A model that the table lacks gets safe defaults, which are shown.
    """
    from datetime import UTC, datetime

    from orchestrator.cli.models.view import model_output, print_model
    from orchestrator.prices import price_book
    from orchestrator.settings import load_settings
    from posology.llm.models.names import parse

    with errors(as_json=as_json):
        settings = load_settings()
        out = model_output(parse(model or settings.model), settings, price_book(settings))
        if as_json:
            print_json(out)
        else:
            print_model(Console(), out, datetime.now(tz=UTC).date())


@app.command("check")
def check(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Model: provider:NAME. Default: POSOLOGY_MODEL."),
    ] = "",
    *,
    max_cost: Annotated[
        str,
        typer.Option("--max-cost", metavar="USD", help="Maximum cost of all calls in dollars."),
    ] = "0.05",
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough",
            help="Also check caching, effort and bounds, with up to seven more calls. Default: false.",
        ),
    ] = False,
    base_url: BaseUrlOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make two to four small calls and say whether the model does what questions need.

    They tell whether the key or the server works, the schema is kept, a verdict is given, usage is reported, and what a
    call costs and takes. With --thorough the model is compared with what is known of it. Where the provider counts tokens
    free of charge, bounds are checked without calls. A bound that does not hold is raised from then on: see `posology
    models show`.

    Exit status 4: something is wrong.
    """
    from datetime import UTC, datetime

    from orchestrator.budget import open_budget
    from orchestrator.cli.models.check import Check
    from orchestrator.cli.models.view import print_check
    from orchestrator.configuration.measured import Measured, write
    from orchestrator.models import Models
    from orchestrator.question.request import AskRequest
    from orchestrator.service import open_connections
    from orchestrator.settings import load_settings

    with errors(as_json=as_json):
        settings = load_settings()
        asked = AskRequest.parse(
            {"question": "?", "model": model or None, "max_cost_usd": max_cost}
        )
        assert asked.max_cost_usd is not None
        cap, name = asked.max_cost_usd, asked.to_request(settings).model
        settings = settings.reached_at(name, base_url)

        async def work() -> ModelCheck:
            models = Models(settings.embedder, settings.embedding)
            async with (
                open_budget(settings, tenant) as budget,
                open_connections(settings, models, budget.meter) as connections,
            ):
                check = Check(
                    model=name,
                    connections=connections,
                    ledger=budget.ledger,
                    cap=cap,
                    effort=settings.effort,
                    thorough=thorough,
                )
                found = await check.run()
            measured = Measured(
                day=datetime.now(tz=UTC).date(),
                share=check.share,
                findings={one.name: one.ok for one in found.findings},
            )
            write(settings, name, measured)
            return found

        out = run(work)
        if as_json:
            print_json(out)
        else:
            print_check(Console(), out)
    if not out.ok:
        raise typer.Exit(ConfigurationError.exit_code)
