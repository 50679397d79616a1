"""Questions that this process answers itself."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import anyio
import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.ask.outcome import write_explained, write_job
from orchestrator.cli.ask.stack import ask_stack, search_stack
from orchestrator.cli.common import BaseUrlOption, IndexOption, errors, fail, tell_preparing
from orchestrator.cli.index.options import ColumnOptions
from orchestrator.cli.live.options import LiveOptions
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.output.formats import OutputOptions
from orchestrator.cli.question_options import KOption, QuestionOptions, RequestOptions
from orchestrator.environment import environment
from orchestrator.rendering.kinds import Format
from orchestrator.settings import Settings, load_settings
from posology.errors import InputError

if TYPE_CHECKING:
    from orchestrator.ingest.cache import CachedIndex
    from posology.corpus.references.columns import Columns

PathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH",
        help="Files and folders to answer from, instead of an index. They are indexed once, in the cache.",
    ),
]
LocalOption = Annotated[
    bool,
    typer.Option(
        "--local",
        help="Answer in this process, not through a stack that runs with the same settings. Default: false.",
    ),
]


@grouped
def ask(
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="The question. -: standard input.")
    ],
    paths: PathsArgument = None,
    *,
    columns: ColumnOptions,
    index: IndexOption = None,
    live: LiveOptions,
    options: QuestionOptions,
    why: Annotated[
        bool, typer.Option("--why", help="Also explain the decision, step by step.")
    ] = False,
    base_url: BaseUrlOption = None,
    local: LocalOption = False,
    output: OutputOptions,
) -> None:
    """Answer a question from the index, with verified quotes, or refuse.

    With PATH, the files are indexed first; the next question to the same files is answered at once. With --live, literature
    is fetched for the question and indexed first, free of charge, and the answer is made from it alone.

    A stack that runs here with the same settings answers as a job, much sooner; see --local. With --base-url, this process
    answers.
    """
    from orchestrator.question.checks import check_awaited
    from orchestrator.question.request import AskRequest
    from posology.llm.accounting import Account
    from posology.published.answers import judged

    form = output.chosen()
    account = Account()
    with errors(as_json=form is Format.JSON, account=account):
        settings = load_settings()
        tell_preparing()
        asked = AskRequest.parse(options.fields(question))
        request = asked.to_request(settings)
        settings = settings.reached_at(request.model, base_url)
        check_awaited(request.tier)
        unread: tuple[str, ...] = ()
        if live.asked and (paths or index is not None):
            raise typer.BadParameter("--live excludes PATH and --index")
        fetch = live.fetched(
            request.query.text, settings, policy=request.policy, quiet=form is not Format.TEXT
        )
        if fetch is not None:
            paths = [live.files(settings, fetch)]
        if paths:
            _require_quotes(question, paths)
            named = columns.chosen()
            found = indexed(paths, named, index, settings, quiet=form is not Format.TEXT)
            index, unread = str(found.place), found.unread
        elif columns.column:
            raise typer.BadParameter("--column needs PATH: it names the columns of files")
        # a stack has only the templates and addresses that it was started with
        elif (
            not (local or asked.prompts or base_url)
            and (job := ask_stack(settings, asked, index)) is not None
        ):
            write_job(job, form, why=why)
            return

        from orchestrator.models import Models

        models = Models(settings.embedder, settings.embedding)
        models.load_ahead(None if judged(request.model) else settings.reading)

        # while the encoder loads
        from orchestrator.budget import open_budget
        from orchestrator.cli.ask.progress import shown_replies
        from orchestrator.question.report import ask_output
        from orchestrator.service import open_service
        from posology.budget.ledger.journal import LedgerJournal

        async def run() -> None:
            async with open_budget(settings) as budget, AsyncExitStack() as stack:
                # a Redis that does not answer is reported before the index opens
                await budget.ledger.job_limit()
                service = await stack.enter_async_context(
                    open_service(settings, index, meter=budget.meter, models=models)
                )
                journal = LedgerJournal(budget.ledger, account, cap=asked.max_cost_usd)
                with shown_replies(Console(stderr=True, quiet=form is not Format.TEXT)) as told:
                    report = await service.ask(
                        request,
                        account,
                        journal,
                        remaining=budget.remaining(account, asked.max_cost_usd),
                        told=told,
                    )
                out = ask_output(report)
            noted = out.model_copy(update={"notes": (*unread, *out.notes)}) if unread else out
            noted = noted if fetch is None else noted.from_fetch(fetch)
            write_explained(noted, form, why=why)

        anyio.run(run)


def _require_quotes(question: str, paths: list[Path]) -> None:
    """Refuse a question without quotation marks, whose words would be taken for files."""
    if " " not in question.strip() and not any(path.exists() for path in paths):
        words = " ".join((question, *map(str, paths)))
        raise InputError(
            f'no such files: {", ".join(map(str, paths))}. If they are words of the question, put it in quotes: "{words}"',
            paths=tuple(map(str, paths)),
        )


def indexed(
    paths: list[Path], columns: Columns, index: str | None, settings: Settings, *, quiet: bool
) -> CachedIndex:
    """Return the cached index of files, after making it if need be; say what of them is not in it."""
    from orchestrator.cli.index.forms import ingest_output
    from orchestrator.cli.terminal import show_ingest
    from orchestrator.ingest.cache import cached_index
    from orchestrator.rendering.words import safe

    if index is not None:
        raise typer.BadParameter("PATH and --index exclude each other")
    errors = Console(stderr=True)
    found = cached_index(paths, settings, columns=columns, console=None if quiet else errors)
    if found.report is not None:
        show_ingest(errors, errors, ingest_output(found.report))
    for sentence in found.unread:
        errors.print(Text(safe(sentence), style="yellow"), soft_wrap=True)
    return found


class SearchOptions(RequestOptions):
    """How passages are searched for."""

    names = ("k", "mode", "retracted", "filters", "index_version")
    defaults = MappingProxyType({"k": 10})


@grouped
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Search query.")],
    *,
    index: IndexOption = None,
    options: SearchOptions,
    local: LocalOption = False,
    output: OutputOptions,
) -> None:
    """Show the passages that a question would be answered from, with their places in every ranking.

    No model is called, except a paid embedder of the index. A stack that runs here with the same settings searches
    sooner; see --local.
    """
    from orchestrator.cli.output.write import write_search
    from orchestrator.question.report import language_remark
    from orchestrator.question.request import AskRequest, SearchRequest
    from posology.text.languages import foreign

    form = output.chosen()
    with errors(as_json=form is Format.JSON):
        settings = load_settings()
        tell_preparing()
        request = AskRequest.parse({"question": query, **options.given()}).to_request(settings)
        if language := foreign(request.query.text):
            fail(language_remark(language))
        if not local:
            asked = SearchRequest.parse({"query": query, **options.given()})
            if (found := search_stack(settings, asked, index)) is not None:
                write_search(found, form)
                return

        from orchestrator.models import Models

        models = Models(settings.embedder, settings.embedding)
        models.load_ahead()

        # while the encoder loads
        from orchestrator.budget import open_budget
        from orchestrator.question.passages import search_output
        from orchestrator.service import open_service
        from posology.budget.ledger.journal import LedgerJournal
        from posology.llm.accounting import Account

        async def run() -> None:
            async with (
                open_budget(settings) as budget,
                open_service(settings, index, meter=budget.meter, models=models) as service,
            ):
                started = time.perf_counter()
                retrieval = await service.search(
                    request.query,
                    k=request.k,
                    mode=request.mode,
                    retracted=request.retracted,
                    filters=request.filters,
                    spend=service.pipeline.spend(
                        LedgerJournal(budget.ledger, Account()), settings.tenant
                    ),
                    version=request.index_version,
                )
                seconds = time.perf_counter() - started
            out = search_output(retrieval, mode=request.mode, k=request.k, seconds=seconds)
            write_search(out, form)

        anyio.run(run)


def demo(
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Ask all 40 questions and print a table.")
    ] = False,
    index: Annotated[
        str, typer.Option("--index", metavar="DIR", help="Folder of the sample index.")
    ] = ".posology/sample",
    model: Annotated[str | None, typer.Option(help="Default: POSOLOGY_MODEL.")] = None,
    k: KOption = 8,
) -> None:
    """Ingest the sample notes of Posology and answer questions about them through a queue."""
    from orchestrator.cli.demo.story import Demo, run_demo

    with errors(as_json=False):
        settings = load_settings()
        tell_preparing()
        demonstration = Demo(
            settings=settings,
            environment={**environment(), **settings.environment()},
            place=index,
            folder=Path(settings.home) / "demo",
            model=model or settings.model,
            k=k,
            everything=everything,
        )
        anyio.run(run_demo, Console(), demonstration)
