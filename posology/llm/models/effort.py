"""How much a model may reason in each stage, and the output tokens that it may take for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from posology.errors import InvalidQuery
from posology.llm.models.families import Capabilities, capabilities
from posology.types import EFFORTS, Call, Effort, Stage

#: stages whose default is ``low``: they weigh evidence. The others copy, shorten or sort, at the lowest level there is
_WEIGHING: Final = frozenset({Stage.ANSWER, Stage.REDUCE})
#: stages whose calls have an effort
STAGES: Final = (
    Stage.ANSWER,
    Stage.EXTRACT,
    Stage.REDUCE,
    Stage.COMPRESS,
    Stage.LABEL,
    Stage.JUDGE,
)
#: how many times larger the bound of a second call is
_LARGER: Final = 4
#: maximum bound on the output tokens of a call to a model whose own is unknown
MAX_OUTPUT: Final = 131_072
#: Output tokens that reasoning may take, added to a reply's bound. Estimates: with room, gpt-5 at ``medium`` reasoned
#: for 1,408 tokens before an answer of 120, and gpt-5-nano for 1,152 (covan-ai/covan#112).
_ROOM: Mapping[Effort, int] = MappingProxyType(
    {
        "none": 0,
        "minimal": 512,
        "low": 1_024,
        "medium": 4_096,
        "high": 12_288,
        "xhigh": 24_576,
        "max": 49_152,
    }
)


@lru_cache(maxsize=256)
def parse_effort(asked: str) -> Mapping[Stage, Effort]:
    """Return the level of each stage that a setting names.

    Args:
        asked: one level for all stages, such as ``low``, or levels of stages: ``answer=medium,extract=none``.

    Raises:
        InvalidQuery: a level or a stage is unknown, or a stage is named twice.
    """
    if "=" not in asked:
        return dict.fromkeys(STAGES, _level(asked, asked))
    levels: dict[Stage, Effort] = {}
    for pair in asked.split(","):
        name, _, level = pair.partition("=")
        stage = next((one for one in STAGES if one == name.strip().lower()), None)
        if stage is None or stage in levels:
            problem = "is named twice" if stage in levels else "is no stage"
            raise InvalidQuery(
                f"effort {asked!r}: {name.strip()!r} {problem}; stages are {', '.join(STAGES)}",
                field="effort",
            )
        levels[stage] = _level(level, asked)
    return levels


def check_effort(model: str, asked: str | None) -> None:
    """Check that a model has the levels that a request asks for. Every level of an unknown model is accepted.

    Raises:
        InvalidQuery: it does not.
    """
    if asked is None:
        return
    family = capabilities(model)
    for level in parse_effort(asked).values():
        # a model without reasoning does none anyway; one that always reasons takes its lowest level
        if not family.known or level in (*family.efforts, "none"):
            continue
        if not family.efforts:
            raise InvalidQuery(f"{model} takes no effort (got {asked!r})", field="effort")
        raise InvalidQuery(
            f"{model} has no effort {level!r}: use {', '.join(family.efforts)}", field="effort"
        )


def effort_of(model: str, stage: Stage, asked: str | None = None) -> Effort | None:
    """Return the level of effort of a call; ``None``: none is sent.

    Without a request, extracts, rewrites and labels have the lowest level of their model, answers and reductions
    ``low``. For a level that the model lacks it gets the next lower one, or its lowest.

    Args:
        model: ``provider:name``.
        stage: stage of the call.
        asked: as :func:`parse_effort` takes it.
    """
    family = capabilities(model)
    wanted = parse_effort(asked).get(stage) if asked else None
    if not family.efforts:
        # a model of a known family without the parameter would refuse the request
        return None if family.known else wanted
    if wanted is None:
        wanted = "low" if stage in _WEIGHING else "none"
    upto = EFFORTS[: EFFORTS.index(wanted) + 1]
    return next((one for one in reversed(family.efforts) if one in upto), family.efforts[0])


def reasoning_tokens(model: str, effort: Effort | None) -> int:
    """Return the output tokens to add to the bound of a reply for the model's reasoning.

    Args:
        model: ``provider:name``.
        effort: level that the call asks for; ``None``: none, and an unknown model gets no room.
    """
    family = capabilities(model)
    if effort is None or not family.reasons(effort):
        return 0
    return _bounded(_ROOM[effort], family)


def larger_bound(call: Call) -> int | None:
    """Return the bound on output tokens of a second call, where reasoning may have used up the first call's.

    Returns:
        Tokens; ``None``: the model does not reason, or takes no larger bound.
    """
    family = capabilities(call.model)
    if not family.reasons(call.effort):
        return None
    larger = min(_LARGER * call.max_tokens, family.output or MAX_OUTPUT)
    return larger if larger > call.max_tokens else None


def _bounded(tokens: int, family: Capabilities) -> int:
    return tokens if family.output is None else min(tokens, family.output // 2)


def _level(text: str, asked: str) -> Effort:
    level = next((one for one in EFFORTS if one == text.strip().lower()), None)
    if level is None:
        raise InvalidQuery(
            f"effort {asked!r}: {text.strip()!r} is no level; levels are {', '.join(EFFORTS)}",
            field="effort",
        )
    return level
