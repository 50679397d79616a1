"""An index of the passages that the suites' own files hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from orchestrator.evaluation.suites.base import Suite
from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.settings import Settings
from posology.errors import BadFile, ConfigurationError, InputError
from posology.index.embedders.paid.models import PROVIDER

#: the passages in a run's folder, their index, and a file that exists once all of them are in it
_PASSAGES, _INDEX, _COMPLETE = "passages.jsonl", "index", "index.complete"


def _merged(suites: Sequence[Suite]) -> Mapping[str, Mapping[str, str]]:
    """Return the passages of suites by id; snippets of one abstract that differ between files are one passage.

    Raises:
        InputError: an id stands for passages of two files that are not the same article.
    """
    rows: dict[str, dict[str, str]] = {}
    for suite in suites:
        for one in suite.passages:
            known = rows.setdefault(one.id, {"id": one.id, "title": one.title, "text": one.text})
            if one.text in known["text"]:
                continue
            if not one.id.startswith("pmid:"):
                raise InputError(
                    f"{one.id} is a passage of {suite.name} and another one of an earlier suite: run each in a folder of its own"
                )
            known["text"] = f"{known['text']}\n{one.text}"
    return rows


def own_index(
    suites: Sequence[Suite], folder: Path, settings: Settings, console: Console | None = None
) -> Path:
    """Return the index of the suites' own passages, which is made in the run's folder unless it is there. Blocking.

    Args:
        suites: the suites.
        folder: of the run.
        settings: the configuration.
        console: shows the progress of the ingest; ``None``: none is shown.

    Raises:
        InputError: a suite's file holds no passages, two suites' passages have one id, or the folder's index is of other suites.
        BadFile: the folder cannot be written.
        ConfigurationError: vectors would be bought.
    """
    empty = next((suite.name for suite in suites if not suite.passages), None)
    if empty is not None:
        raise InputError(f"the file of {empty} holds no passages: give the index with --index")
    if (settings.embedder or "").partition(":")[0] == PROVIDER:
        raise ConfigurationError(
            f"the embedder {settings.embedder} is paid: run `posology ingest`, which prints the cost first, and give "
            "the index with --index"
        )
    rows = _merged(suites)
    content = "".join(f"{json.dumps(row)}\n" for row in rows.values())
    path = folder / _PASSAGES
    try:
        if path.exists() and path.read_text(encoding="utf-8") != content:
            raise InputError(f"the index in {folder} is of other suites: use another folder")
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
    if not (folder / _COMPLETE).exists():
        target = Target(place=str(folder / _INDEX))
        report = run_ingest([path], settings, target, console=console)
        for fault in (*report.bad_files, *report.bad_records):
            raise fault
        (folder / _COMPLETE).touch()
    return folder / _INDEX
