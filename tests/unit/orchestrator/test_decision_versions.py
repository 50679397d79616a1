"""Which prompts a decision records."""

from __future__ import annotations

import pytest

from orchestrator.question.decider import PROMPTS, Decider
from policies.fixed import Fixed
from posology.seams import Rewriter
from posology.types import Decision, Dose
from prompts.template import digests
from strategies.compression import COMPRESSORS, make
from strategies.compression import PROMPTS as REWRITERS


def recorded(dose: Dose, **features: object) -> dict[str, str]:
    decision = Decision(dose=dose, policy="fixed", reason="As asked.", features=features)
    found = Decider().versions(
        Fixed(dose=dose), decision, index=None, prices=None, quotes="sentences"
    )
    return {name.removeprefix("prompt "): v for name, v in found.items() if "prompt " in name}


@pytest.mark.parametrize("compressor", [None, "leancontext", "top+leancontext"])
def test_without_a_rewriter_it_records_the_strategies_prompts(compressor: str | None) -> None:
    dose = Dose(strategy="compressed", compressor=compressor)
    assert recorded(dose) == recorded(Dose(strategy="direct")) == digests(PROMPTS)


@pytest.mark.parametrize("name", list(REWRITERS))
def test_with_a_rewriter_it_records_the_rewriters_too(name: str) -> None:
    wanted = digests((*PROMPTS, *REWRITERS[name]))
    assert recorded(Dose(strategy="compressed", compressor=name)) == wanted
    assert recorded(Dose(strategy="compressed", compressor=f"top:0.2+{name}")) == wanted
    # it was weighed, and does not pay
    assert recorded(Dose(strategy="direct"), **{"saving.compressor": name}) == wanted


@pytest.mark.parametrize("name", list(REWRITERS))
def test_every_rewriter_has_its_prompts_in_the_table(name: str) -> None:
    assert name in COMPRESSORS
    assert isinstance(make(name), Rewriter)
