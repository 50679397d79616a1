"""Five questions of the packaged sample to a real model: ``python -m evals.live smoke --model MODEL``."""

from __future__ import annotations

import time
from pathlib import Path

from orchestrator.connections import Connections
from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.models import Models
from orchestrator.question.request import Request
from orchestrator.service import Service, make_service
from orchestrator.settings import load_settings
from posology.corpus import sample
from posology.errors import PosologyError
from posology.llm.accounting import Account
from posology.llm.providers.local.process import stop
from posology.types import Answer


def _some() -> list[sample.SampleQuestion]:
    """Return five questions of the sample, three of them with choices."""
    every = sample.questions()
    return [one for one in every if one.query.choices][:3] + [
        one for one in every if not one.query.choices
    ][:2]


async def _smoked(service: Service, model: str, one: sample.SampleQuestion) -> bool:
    """Ask a question, print what became of it, and return whether that is a fault."""
    began = time.perf_counter()
    request = Request(query=one.query, model=model, k=4)
    try:
        found = (await service.ask(request, Account())).outcome
    except PosologyError as error:
        print(f"failed: {one.query.text}: {type(error).__name__}: {error}")
        return True
    seconds = time.perf_counter() - began
    if not isinstance(found, Answer):
        print(f"refused: {one.query.text}: {found.reason} ({seconds:.0f} s)")
        return False
    quotes = len(found.citations)
    print(
        f"{found.choice or '-'}: {one.query.text}: {found.text} ({quotes} quotes, {seconds:.0f} s)"
    )
    return bool(one.query.choices) and found.choice is None


async def smoke(model: str, work: Path) -> int:
    """Ask five questions of the packaged sample; 1: one failed, or has no verdict where choices are given."""
    settings = load_settings()
    place, models = work / "sample", Models(settings.embedder, settings.embedding)
    with sample.notes_file() as notes:
        run_ingest([notes], settings, Target(place=str(place)))
    connections = Connections(settings, offline=lambda: models.offline(settings.reading))
    service = await make_service(settings, models, connections, str(place))
    faults = [await _smoked(service, model, one) for one in _some()]
    await connections.aclose()
    stop(work / "home" / "gguf")
    return int(any(faults))
