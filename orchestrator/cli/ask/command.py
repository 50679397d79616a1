"""Questions that this process answers itself."""

from __future__ import annotations

import time
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import anyio
import typer
from rich.console import Console

from orchestrator.cli.common import (
    IndexOption,
    JsonOption,
    errors,
    print_json,
)
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.question_options import KOption, QuestionOptions, RequestOptions
from orchestrator.settings import environment, load_settings


@grouped
def ask(
    question: Annotated[str, typer.Argument(help="The question. -: standard input.")],
    *,
    index: IndexOption = None,
    options: QuestionOptions,
    why: Annotated[
        bool, typer.Option("--why", help="Also explain the decision, step by step.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the index, with verified quotes, or refuse."""
    from orchestrator.budget import open_budget
    from orchestrator.cli.ask.explanation import why_answer
    from orchestrator.cli.terminal import show_answer
    from orchestrator.question.report import ask_output
    from orchestrator.question.request import AskRequest
    from orchestrator.service import open_service
    from posology.budget.ledger.journal import LedgerJournal
    from posology.llm.accounting import Account

    account = Account()
    with errors(as_json=as_json, account=account):
        settings = load_settings()
        asked = AskRequest.parse(options.fields(question))
        request = asked.to_request(settings)

        async def run() -> None:
            async with (
                open_budget(settings) as budget,
                open_service(settings, index, meter=budget.meter) as service,
            ):
                journal = LedgerJournal(budget.ledger, account, cap=asked.max_cost_usd)
                out = ask_output(
                    await service.ask(
                        request,
                        account,
                        journal,
                        remaining=budget.remaining(account, asked.max_cost_usd),
                    )
                )
            if as_json:
                print_json(out)
            else:
                show_answer(Console(), out)
                if why:
                    why_answer(Console(), out)

        anyio.run(run)


class SearchOptions(RequestOptions):
    """How passages are searched for."""

    names = ("k", "mode", "retracted", "filters", "index_version")
    defaults = MappingProxyType({"k": 10})


@grouped
def search(
    query: Annotated[str, typer.Argument(help="Search query.")],
    *,
    index: IndexOption = None,
    options: SearchOptions,
    as_json: JsonOption = False,
) -> None:
    """Show the passages that a question would be answered from, with their places in every ranking.

    No model is called, except a paid embedder of the index.
    """
    from orchestrator.budget import open_budget
    from orchestrator.cli.index.forms import search_output
    from orchestrator.cli.terminal import show_search
    from orchestrator.question.request import AskRequest
    from orchestrator.service import open_service
    from posology.budget.ledger.journal import LedgerJournal
    from posology.llm.accounting import Account

    with errors(as_json=as_json):
        settings = load_settings()
        request = AskRequest.parse({"question": query, **options.given()}).to_request(settings)

        async def run() -> None:
            async with (
                open_budget(settings) as budget,
                open_service(settings, index, meter=budget.meter) as service,
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
            if as_json:
                print_json(out)
            else:
                show_search(Console(), out)

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
        demonstration = Demo(
            settings=settings,
            environment=environment(),
            place=index,
            folder=Path(settings.home) / "demo",
            model=model or settings.model,
            k=k,
            everything=everything,
        )
        anyio.run(run_demo, Console(), demonstration)
