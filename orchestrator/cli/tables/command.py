"""``posology table``: documents and fields in, an evidence table out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.common import JsonOption, errors, print_json, run
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.option_groups import Group, grouped
from orchestrator.cli.purchases import (
    PaymentOptions,
    carry_out,
    check_request,
    cost_lines,
    listed,
    say,
)
from orchestrator.cli.question_options import RequestOptions
from orchestrator.settings import load_settings
from posology.errors import BadFile

if TYPE_CHECKING:
    from orchestrator.rendering.tables import TableForm
    from orchestrator.tables.request import FieldsRequest
    from orchestrator.tables.run import Wanted
    from orchestrator.training.paid.run import Terms
    from posology.published.tables.forms import TableEstimate, TableOutput

#: suffix of the run's file, in place of that of the table's file: a table in another format costs nothing
_RUN = ".run.jsonl"
#: suffixes of a table's file
_SUFFIXES = {".csv": "csv", ".xlsx": "xlsx", ".md": "markdown", ".json": "json"}


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldOptions(Group):
    """Fields of a table."""

    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="Fields that are ready: pico, or appraisal (risk of bias, precision). Default: pico if neither fields nor criteria are given.",
        ),
    ] = None
    fields: Annotated[
        Path | None,
        typer.Option(
            "--fields",
            metavar="FILE",
            help="TOML with fields of your own ([[fields]] with name, question, type, choices), criteria, and a preset.",
        ),
    ] = None
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            "--criterion",
            metavar="TEXT",
            help="Criterion of inclusion; with criteria, each document is screened. Repeat for several.",
        ),
    ] = None

    def asked(self) -> FieldsRequest:
        """Return the fields.

        Raises:
            BadFile: the file cannot be read, or has another form.
            InvalidQuery: a preset or criterion is invalid.
        """
        from orchestrator.tables.request import FieldsRequest, read_fields

        given = FieldsRequest() if self.fields is None else read_fields(self.fields)
        own = given.model_dump(mode="json", exclude_defaults=True)
        criteria = (*given.criteria, *(self.criterion or ()))
        preset = {} if self.preset is None else {"preset": self.preset}
        return FieldsRequest.parse({**own, **preset, "criteria": criteria})


class ReadingOptions(RequestOptions):
    """The model that reads documents."""

    names = ("model", "max_tokens", "effort")


@grouped
def table(
    papers: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Files and folders of literature, as `posology ingest` reads them.",
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Table: a file named .csv, .xlsx, .md or .json."
        ),
    ],
    asked: FieldOptions,
    reading: ReadingOptions,
    part_words: Annotated[
        int,
        typer.Option(
            "--part-words",
            min=200,
            help="Words that one call reads. A longer document is read in parts, and their values are merged. Lower it "
            "for models with a small window.",
        ),
    ] = 20_000,
    payment: PaymentOptions,
    as_json: JsonOption = False,
) -> None:
    """Fill in an evidence table from documents, each value with verified quotes, or not reported.

    A value stands only if sentences of its document bear it out. The estimated cost is printed first, and at a terminal you
    are asked to confirm. Each reply is kept beside it, in a file named .run.jsonl: the same command resumes an interrupted run, one with
    further documents pays for these alone, and no call is paid for twice. Exit status 1: some records or documents could not
    be read.
    """
    with errors(as_json=as_json):
        from orchestrator.cli.jobs.files import check_output
        from orchestrator.tables.documents import read_papers
        from orchestrator.tables.run import Wanted
        from strategies.tables.reading import Reading

        form = _form(output)
        check_output(output)
        settings = load_settings()
        request, cap = check_request(reading, payment.max_cost, settings)
        wanted = Wanted(
            papers=read_papers(papers, without=(output, output.with_suffix(_RUN))),
            reading=Reading(
                fields=asked.asked().to_fields(),
                model=request.model,
                max_tokens=request.max_tokens,
                effort=request.effort,
                part_words=part_words,
            ),
        )
        out = _fill_in(wanted, payment.terms(settings, cap), payment, output, form, as_json=as_json)
        if as_json:
            print_json(out)
        else:
            say(_report(out, output))
    if out.left_out or any(row.error for row in out.rows):
        raise typer.Exit(SOME_BAD)


def _fill_in(
    wanted: Wanted,
    terms: Terms,
    payment: PaymentOptions,
    output: Path,
    form: TableForm,
    *,
    as_json: bool,
) -> TableOutput:
    """Read the remaining documents and write the table."""
    from orchestrator.rendering.tables import export_table
    from orchestrator.tables.output import table_output
    from orchestrator.tables.rows import open_run
    from orchestrator.training.paid.run import prepare

    with open_run(output.with_suffix(_RUN)) as file:
        paid, quote = run(lambda: prepare(terms, wanted.reading.model, lambda _: wanted.plan(file)))
        estimate = wanted.estimate(quote, len(paid.todo))
        say(listed(wanted.papers.remarks, "remarks"))
        say(_estimate_lines(estimate))
        if not carry_out(paid, terms, payment, as_json=as_json):
            return table_output(
                wanted.reading,
                (),
                left_out=wanted.papers.bad,
                estimate=estimate,
                spent=file.content.spent,
            )
        out = run(lambda: wanted.conclude(file, estimate, terms.models.judge))
    content = export_table(out, form)
    try:
        output.write_bytes(content)
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(output)) from None
    return out


def _form(output: Path) -> TableForm:
    from orchestrator.rendering.tables import TableForm, check_form

    try:
        form = TableForm(_SUFFIXES[output.suffix.lower()])
    except KeyError:
        raise typer.BadParameter(
            f"--output must be named {', '.join(_SUFFIXES)} (got {output})"
        ) from None
    check_form(form)
    return form


def _estimate_lines(out: TableEstimate) -> Iterator[str]:
    before = f"; {out.read:,} already read" if out.read else ""
    yield f"{out.documents:,} documents, {out.documents - out.read:,} to read{before}"
    if out.documents > out.read:
        yield from cost_lines(out, "table")


def _report(out: TableOutput, output: Path) -> Iterator[str]:
    from orchestrator.rendering.words import money, plural

    yield from listed(out.left_out, "records that cannot be read")
    yield from (f"{row.document}: not read: {row.error}" for row in out.rows if row.error)
    yield from (
        f"{row.document}: {plural(row.unread_pages, 'page')} not read"
        for row in out.rows
        if row.error is None and row.unread_pages
    )
    if not out.rows:
        return
    cells = [cell for row in out.rows for cell in row.cells]
    values = sum(cell.value is not None for cell in cells)
    refused = sum(cell.value is None and cell.refused is not None for cell in cells)
    unread = sum(len(row.cells) for row in out.rows if row.error is not None)
    more = f", {unread:,} not read" if unread else ""
    yield (
        f"{output}: {len(out.rows):,} documents, {len(cells):,} cells: {values:,} with verified quotes, {refused:,} values "
        f"refused, {len(cells) - values - refused - unread:,} not reported{more}; {money(out.spent_usd)} spent"
    )
