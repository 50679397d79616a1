"""``posology show``: a passage in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.common import IndexOption, errors
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.output.formats import OutputOptions
from orchestrator.cli.question_options import option
from orchestrator.rendering.kinds import Format
from orchestrator.settings import load_settings

if TYPE_CHECKING:
    from posology.index.view import View
    from posology.types import Retrieved


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
    from orchestrator.question.report import passage_output
    from orchestrator.service import index_place
    from posology.index.store import Index

    form = output.chosen()
    with errors(as_json=form is Format.JSON):
        settings = load_settings()
        opened = Index.open(index_place(settings, index))
        opened.keep = settings.kept_versions
        view = opened.view_at(index_version)
        found = _found(view, passage.strip())
        write_passage(passage_output(found, index=view.version), form)


def _found(view: View, name: str) -> Retrieved:
    # the number alone is what people copy from PubMed
    if name.isdecimal() and not view.digests([name]):
        name = f"pmid:{name}"
    return view.fetch([name])[0]
