"""``posology show``: a passage in full; ``posology quote``: the passages that contain a quote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.common import IndexOption, JsonOption, errors, print_json
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.output.formats import OutputOptions
from orchestrator.cli.question_options import option
from orchestrator.rendering.kinds import Format
from orchestrator.settings import load_settings

if TYPE_CHECKING:
    from posology.index.store import Index


@grouped
def show(
    passage: Annotated[
        str,
        typer.Argument(metavar="ID", help="Passage id, e.g. pmid:10051933, or a PMID."),
    ],
    *,
    index: IndexOption = None,
    index_version: Annotated[int | None, option("index_version")] = None,
    output: OutputOptions,
) -> None:
    """Print a passage in full, with its metadata and a link."""
    from orchestrator.cli.output.write import write_passage
    from orchestrator.retrieval import read_passage

    form = output.chosen()
    with errors(as_json=form is Format.JSON):
        write_passage(read_passage(_opened(index), passage, index_version), form)


@grouped
def quote(
    quote: Annotated[
        str, typer.Argument(metavar="QUOTE", help="A sentence or a few, at most 2000 characters.")
    ],
    *,
    index: IndexOption = None,
    index_version: Annotated[int | None, option("index_version")] = None,
    as_json: JsonOption = False,
) -> None:
    """Find the passages that contain a quote, word for word or nearly, and say what differs.

    It calls no model. Exit code 1: no passage contains it word for word.
    """
    from orchestrator.cli.output.write import write_form
    from orchestrator.question.sent import QuoteRequest
    from orchestrator.rendering.text import quote_as_text
    from orchestrator.retrieval import find_quote

    with errors(as_json=as_json):
        asked = QuoteRequest.parse({"quote": quote, "index_version": index_version})
        found = find_quote(_opened(index), asked.quote, asked.index_version)
    if as_json:
        print_json(found)
    else:
        write_form(quote_as_text(found), Format.TEXT)
    if not any(place.verified for place in found.places):
        raise typer.Exit(SOME_BAD)


def _opened(place: str | None) -> Index:
    from orchestrator.service import index_place
    from posology.index.store import Index

    settings = load_settings()
    opened = Index.open(index_place(settings, place))
    opened.keep = settings.kept_versions
    return opened
