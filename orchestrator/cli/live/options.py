"""Options of fetches from literature services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.option_groups import Group

if TYPE_CHECKING:
    from orchestrator.settings import Settings
    from posology.corpus.live.forms import Asked, Journal
    from posology.published.ingests import FetchOutput


#: articles without a full text that are shown
_SHOWN = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchOptions(Group):
    """Options of a fetch beside its query."""

    service: Annotated[
        str,
        typer.Option(
            "--service",
            help="Service: pubmed, europepmc or clinicaltrials. Default: pubmed.",
        ),
    ] = "pubmed"
    most: Annotated[
        int, typer.Option("--max", metavar="N", help="Maximum records, 1 to 10000. Default: 100.")
    ] = 100
    full_text: Annotated[
        bool,
        typer.Option(
            "--full-text",
            help="Look for each article's full text in PubMed Central, Europe PMC and Unpaywall, too. Default: false.",
        ),
    ] = False

    def asked(self, **what: object) -> Asked:
        """Return the fetch.

        Args:
            what: one of the fields ``question``, ``query``, ``pmids`` and ``trials`` of a request, ``links`` and ``wider``.

        Raises:
            InvalidQuery: a field is invalid.
        """
        from orchestrator.ingest.live.request import FetchRequest

        return FetchRequest.parse(
            {**what, "service": self.service, "max_records": self.most, "full_text": self.full_text}
        ).asked()


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveOptions(Group):
    """Whether literature is fetched for a question first."""

    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Fetch literature for the question from --service first. Default: false.",
        ),
    ] = False
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            help="With --live, the query for the service. Default: the question's words, joined by AND.",
        ),
    ] = None
    fetch: FetchOptions

    @property
    def asked(self) -> bool:
        """Whether literature is to be fetched.

        Raises:
            BadParameter: it is not, and another option says what.
        """
        if not self.live and (self.query is not None or self.fetch != FetchOptions()):
            raise typer.BadParameter("--query, --service, --max and --full-text need --live")
        return self.live

    def fields(self) -> dict[str, object] | None:
        """Return the options as a request of literature; ``None``: none is asked for."""
        if not self.asked:
            return None
        given = self.fetch
        return {
            "query": self.query, "service": given.service, "max_records": given.most, "full_text": given.full_text,
        }  # fmt: skip

    def fetched(
        self, question: str, settings: Settings, *, policy: str | None, quiet: bool
    ) -> FetchOutput | None:
        """Fetch, and show the query and the progress; ``None``: not asked for. Blocking.

        Wider queries are sent, too, where the policy may search a second time.

        Raises:
            InvalidQuery: the question has no word.
            FetchFailed: the service gave no usable reply.
            InputError: nothing was found.
        """
        if not self.asked:
            return None
        from policies.specs import searches_again

        what = {"question": question} if self.query is None else {"query": self.query}
        asked = self.fetch.asked(**what, wider=searches_again(policy))
        return run_fetch(settings, asked, quiet=quiet)

    @staticmethod
    def files(settings: Settings, found: FetchOutput) -> Path:
        """Return the folder of a fetch's files."""
        from orchestrator.ingest.live.fetching import files_of

        return files_of(settings, found)


def run_fetch(settings: Settings, asked: Asked, *, quiet: bool) -> FetchOutput:
    """Fetch into a folder of this machine, and show the query and the progress. Blocking.

    Raises:
        FetchFailed: the service gave no usable reply.
        InputError: nothing was found.
    """
    from orchestrator.cli.common import run
    from orchestrator.ingest.live.fetching import fetch_here
    from orchestrator.rendering.words import safe

    console = Console(stderr=True, quiet=quiet)

    def say(line: str) -> None:
        console.print(Text(safe(line)), soft_wrap=True)

    say(f"{asked.service}: {_what(asked)}")

    def told(journal: Journal) -> None:
        wanted = min(journal.found, asked.limit)
        more = f", {len(journal.texts)} full texts to look for" if journal.texts else ""
        say(f"fetched {journal.records:,} of {wanted:,} records{more}")

    fetched = run(lambda: fetch_here(settings, asked, told=told))
    for note in (*fetched.notes, *_missing(fetched), fetched.sentence):
        say(note)
    return fetched


def _missing(fetched: FetchOutput) -> Iterator[str]:
    """Yield what did not come, and the reasons."""
    if fetched.missing:
        yield f"{fetched.service} did not send {', '.join(fetched.missing[:_SHOWN])}"
    for text in fetched.texts_missing[:_SHOWN]:
        why = "; ".join(f"{place}: {reason}" for place, reason in text.why.items())
        copy = f": {text.copy_at}" if text.copy_at else ""
        yield f"no full text of {text.record}: {why}{copy}"
    if fetched.without_text > _SHOWN:
        yield f"and of {fetched.without_text - _SHOWN:,} more: see texts_missing in fetch.json"


def _what(asked: Asked) -> str:
    if asked.queries:
        return asked.queries[0]
    if asked.trials:
        return f"{len(asked.trials)} study records"
    return ", ".join(filter(None, (f"{len(asked.pmids)} PMIDs", asked.links)))
