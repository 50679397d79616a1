"""``posology show``: a passage in full."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.cli.common import IndexOption, errors
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.output.formats import OutputOptions
from orchestrator.cli.question_options import option
from orchestrator.rendering.kinds import Format
from orchestrator.settings import load_settings


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
    from orchestrator.service import index_place
    from posology.index.store import Index

    form = output.chosen()
    with errors(as_json=form is Format.JSON):
        settings = load_settings()
        opened = Index.open(index_place(settings, index))
        opened.keep = settings.kept_versions
        write_passage(read_passage(opened, passage, index_version), form)
