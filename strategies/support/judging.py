"""A language model in place of the packaged judge: one call about all sentences of an answer, priced like every other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from posology.llm.models.effort import effort_of, reasoning_tokens
from posology.seams import Guess
from posology.types import Call, Completion, PlannedCall, Query, Stage
from prompts.judge import STANCES, JudgeReply, render_judge, verdict_schema
from prompts.lengths import reply_tokens
from strategies.support.check import Case, Verdict
from strategies.support.repair import ANSWERING

#: most sentences that are judged; the others stay unclear
MOST = 8
#: longest sentence and evidence together, bytes. A longer one is not judged: without its end it may say something else
LONGEST = 2_000
#: sentences of an answer, and tokens of one with its evidence; estimates
_TYPICAL, _TOKENS = 2.5, 180.0
#: share of the questions that are answered, not refused; an estimate
_ANSWERED = 0.9


def judging_call(
    cases: Sequence[Case], query: Query, *, model: str, effort: str | None, strategy: str
) -> Call | None:
    """Return the call that has a model judge the sentences of an answer; ``None``: there is nothing to judge.

    Args:
        cases: the sentences.
        query: the answered question.
        model: that judges.
        effort: as :func:`~posology.llm.models.effort.parse_effort` takes it; ``None``: the model's lowest.
        strategy: of the answer, for the account.
    """
    given = [(cases[place].claim, cases[place].premise) for place in _places(cases)]
    return _call(given, query, model=model, effort=effort, strategy=strategy) if given else None


def verdicts_of(cases: Sequence[Case], said: Completion) -> list[Verdict | None]:
    """Return the verdicts of a reply to :func:`judging_call`, one for each case; it is not sure of what it was not asked.

    Args:
        cases: the sentences.
        said: the reply; one that a provider's filter took gives no verdict.
    """
    found = said.parsed.verdicts if isinstance(said.parsed, JudgeReply) else ()
    stances = dict(zip(_places(cases), (STANCES[word] for word in found), strict=False))
    return [
        Verdict(stance=stances.get(place)) if one.texts else None for place, one in enumerate(cases)
    ]


def plan_judging(
    planned: Iterable[PlannedCall], guess: Guess, *, model: str, effort: str | None
) -> PlannedCall | None:
    """Plan the call that judges a question's answer; ``None``: no call is planned whose reply is an answer.

    Args:
        planned: the question's other calls.
        guess: predicts token counts.
        model: that judges.
        effort: see :func:`judging_call`.
    """
    answering = [one for one in planned if one.call.stage in ANSWERING]
    if not answering:
        return None
    first = answering[0].call

    # a token for each byte, by every bound
    longest = [("", "7 " * (LONGEST // 2))] * MOST
    call = _call(longest, first.query, model=model, effort=effort, strategy=first.strategy)
    bare = render_judge(first.query, ())
    return PlannedCall(
        call=call,
        input=guess.tokens([one.content for one in bare.messages], model) + _TYPICAL * _TOKENS,
        output=guess.output(call, default=4 * _TYPICAL + 8),
        share=_ANSWERED * max(one.share for one in answering),
    )


def _places(cases: Sequence[Case]) -> list[int]:
    """Return the places of the cases that are judged."""
    return [
        place
        for place, one in enumerate(cases)
        if one.texts and len((one.claim + one.premise).encode(errors="surrogatepass")) <= LONGEST
    ][:MOST]


def _call(
    given: Sequence[tuple[str, str]],
    query: Query,
    *,
    model: str,
    effort: str | None,
    strategy: str,
) -> Call:
    rendered = render_judge(query, given)
    level = effort_of(model, Stage.JUDGE, effort)
    return Call(
        stage=Stage.JUDGE,
        model=model,
        query=query,
        excerpts=(),
        messages=rendered.messages,
        prompt=rendered.prompt,
        schema=verdict_schema(len(given)),
        strategy=strategy,
        effort=level,
        max_tokens=reply_tokens(Stage.JUDGE, reasoning=reasoning_tokens(model, level)),
    )
