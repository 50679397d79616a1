"""The plan of an evaluation: every question of every suite, for every policy and model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from orchestrator.evaluation.simulated import asked_as, is_simulated
from orchestrator.evaluation.suites.base import Case, Suite
from orchestrator.question.decisions.comparison import Side
from orchestrator.question.request import AskRequest, Request
from orchestrator.settings import Settings
from posology.errors import BadFile, InvalidQuery

#: characters of a row's key
_KEY = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One way to ask: a policy or a forced strategy, and a model."""

    side: Side
    #: ``provider:name``, or ``simulated:PROFILE``
    model: str

    @property
    def policy(self) -> str:
        """The policy or strategy, as given."""
        return self.side.text


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """A question of a suite, asked in one way."""

    #: digest of all that decides the answer, but for the index and the versions of the code
    key: str
    suite: str
    case: Case
    way: Way
    request: Request


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """All questions to ask, question by question, so that a part of a run compares its ways."""

    suites: tuple[Suite, ...]
    ways: tuple[Way, ...]
    items: tuple[Item, ...]


def ways_of(policies: Sequence[str], models: Sequence[str]) -> tuple[Way, ...]:
    """Return every policy with every model, without repetitions.

    Raises:
        InvalidQuery: unknown policy, strategy, compressor or setting.
    """
    sides = [Side.parse(text) for text in dict.fromkeys(policies)]
    return tuple(Way(side=side, model=model) for model in dict.fromkeys(models) for side in sides)


def plan(
    suites: Sequence[Suite],
    ways: Sequence[Way],
    defaults: Mapping[str, Any],
    settings: Settings,
    *,
    limit: int | None = None,
) -> Plan:
    """Plan an evaluation, and check every question before anything is spent.

    Args:
        suites: the suites.
        ways: policies and models.
        defaults: fields of a request for questions that omit them.
        settings: the configuration.
        limit: most questions of a suite; a larger limit adds questions to those of a smaller one. ``None``: all.

    Raises:
        BadFile: a question of a suite cannot be asked.
        InvalidQuery: a default is wrong.
        UnknownModel: the provider of a model is unknown.
    """
    for way in ways:
        # once, instead of as the fault of the first question
        AskRequest.parse({"question": "?", **defaults, "model": asked_as(way.model)}).to_request(
            settings
        )
    kept = tuple(replace(suite, cases=_drawn(suite, limit)) for suite in suites)
    configured = tuple(_configured(settings))
    items = tuple(
        _item(suite, case, way, defaults, settings, configured)
        for suite in kept
        for case in suite.cases
        for way in ways
    )
    return Plan(suites=kept, ways=tuple(ways), items=items)


def _drawn(suite: Suite, limit: int | None) -> tuple[Case, ...]:
    """Return the questions with the smallest digests, in the file's order."""
    if limit is None or limit >= len(suite.cases):
        return suite.cases
    drawn = sorted(suite.cases, key=lambda case: _digest([suite.name, case.id]))[:limit]
    ids = {case.id for case in drawn}
    return tuple(case for case in suite.cases if case.id in ids)


def _item(
    suite: Suite,
    case: Case,
    way: Way,
    defaults: Mapping[str, Any],
    settings: Settings,
    configured: Sequence[str],
) -> Item:
    asked = {**defaults, **case.fields, "model": asked_as(way.model)}
    try:
        request = way.side.of(AskRequest.parse(asked).to_request(settings))
    except InvalidQuery as error:
        raise BadFile(
            f"question {case.id}: {error.message}", path=suite.name, line=case.line
        ) from None
    # its request is the offline reader's
    simulated = [way.model] if is_simulated(way.model) else []
    return Item(
        key=_digest([suite.name, case.id, *_identity(request), *configured, *simulated]),
        suite=suite.name,
        case=case,
        way=way,
        request=request,
    )


def _identity(request: Request) -> Iterator[str]:
    """Yield what decides the answer. Defaults are left out: a field that a later version adds changes no key."""
    for one in fields(request):
        value = getattr(request, one.name)
        # the folder keeps the index's version
        if one.name != "index_version" and value != one.default:
            yield f"{one.name}={value!r}"


def _configured(settings: Settings) -> Iterator[str]:
    """Yield what the configuration decides the answer by, besides a request's fields; of artefacts, their content."""
    for name in ("compressor", "compressor_model", "reranker", "qtable", "calibration"):
        value = getattr(settings, name)
        if value != type(settings).model_fields[name].default:
            yield f"{name}={_content(str(value))!r}"


def _content(name: str) -> str:
    try:
        return hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except OSError:
        # no file: a name
        return name


def _digest(content: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_KEY]
