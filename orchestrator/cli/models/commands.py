"""``posology models``: what language models can do and cost."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, errors, print_json

app = typer.Typer(help="Show what language models can do and cost.", rich_markup_mode=None)


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
        found = []
        for model in map(parse, listed_models()):
            family = capabilities(str(model))
            off = family.retirement(model.name)
            # a list of what can answer: embedding models write nothing, and variants have names of their own
            if family.output is None or ":" in model.name or (off is not None and off <= today):
                continue
            found.append(model_output(model, settings, prices))
        found.sort(key=lambda one: (one.model.partition(":")[0], one.input_usd_per_million or 0))
        if as_json:
            print_json(ModelList(models=tuple(found)))
        else:
            print_models(Console(), tuple(found), today)


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
