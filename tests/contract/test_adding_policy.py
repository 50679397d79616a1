"""A new policy is its file and one entry of the registry, as CONTRIBUTING.md says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from orchestrator.question.decider import Decider
from orchestrator.question.decisions.forms import Replay
from orchestrator.question.decisions.replay import Present, Replayer
from orchestrator.question.request import AskRequest, JobRequest
from orchestrator.settings import Settings
from policies.calibration import Calibration
from policies.qtable import QTable
from policies.specs import POLICIES, Entry, Spec, parse
from posology.errors import InvalidQuery, InvalidRecord
from posology.llm.accounting import Account
from posology.testing.model import ScriptedModel
from posology.types import Answer, Decision, Dose, JobState, Situation
from tests.integration.jobs_store.helpers import MODEL, open_bench
from tests.integration.jobs_store.local import Local, pipeline, reply, runner

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
NAME = "toy:most=2"


@dataclass(frozen=True, kw_only=True, slots=True)
class Toy:
    """Stands for ``policies/NAME.py``: direct RAG over a few passages."""

    name: str
    most: int

    @property
    def version(self) -> str:
        return f"1:{self.most}"

    @property
    def parts(self) -> Mapping[str, str]:
        return {}

    def __call__(self, situation: Situation) -> Decision:
        return self._decided({"passages": len(situation.retrieval.passages)})

    def replay(self, record: Decision) -> Decision:
        return self._decided(dict(record.features))

    def _decided(self, features: dict[str, object]) -> Decision:
        found = features.get("passages")
        if not isinstance(found, int):
            raise InvalidRecord(f"passages must be a number (got {found!r})", field="passages")
        dose = Dose(strategy="direct", passages=min(self.most, found))
        return Decision(dose=dose, policy=self.name, reason="A few suffice.", features=features)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToySpec(Spec):
    """Its settings."""

    most: int = 3

    def policy(
        self,
        table: QTable | None = None,
        *,
        embedder: str | None = None,
        compressor: str | None = None,
        calibration: Calibration | None = None,
    ) -> Toy:
        del table, embedder, compressor, calibration
        return Toy(name=self.text, most=self.most)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry(
        spec=ToySpec(text="toy"),
        settings={"most": lambda spec, value: replace(spec, most=int(value))},
    )
    monkeypatch.setitem(POLICIES, "toy", entry)


def test_the_guide_names_the_file_and_the_registry_alone() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| a policy \|(.*)\|(.*)\|$", guide, re.MULTILINE)
    assert "policies/NAME.py" in row[0]
    assert re.findall(r"`(\S+\.py)`", row[1]) == ["policies/specs.py"]


def test_names_are_known_without_numpy() -> None:
    code = "import sys, policies.specs; print('numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_without_its_entry_it_is_unknown() -> None:
    with pytest.raises(InvalidQuery) as raised:
        AskRequest(question="Does it help?", policy=NAME).to_request(Settings())
    assert raised.value.field == "policy"


@pytest.mark.usefixtures("registered")
def test_its_name_and_settings_choose_it() -> None:
    assert parse(NAME).policy() == Toy(name=NAME, most=2)
    assert parse("toy").policy() == Toy(name="toy", most=3)
    for text in ("toy:most=x", "toy:least=1"):
        with pytest.raises(InvalidQuery) as raised:
            parse(text)
        assert raised.value.field == "policy"


@pytest.mark.usefixtures("registered")
async def test_it_decides_in_this_process() -> None:
    request = AskRequest(question="Does it help?", model=MODEL, k=4, policy=NAME)
    model = ScriptedModel(reply)
    report = await pipeline(model).run(request.to_request(Settings()), Account(), tenant="t")
    assert isinstance(report.outcome, Answer)
    assert report.decision.policy == NAME
    assert report.decision.dose == Dose(strategy="direct", passages=2)
    assert report.decision.versions["policy"] == "1:2"
    assert [excerpt.passage.id for excerpt in model.calls[0].excerpts] == ["p0", "p1"]


@pytest.mark.usefixtures("registered")
async def test_its_recorded_decision_is_replayed(redis_url: str, tenant: str) -> None:
    async with open_bench(redis_url, tenant) as bench:
        request = JobRequest(question="Does it help?", model=MODEL, k=4, policy=NAME)
        job = (await bench.store.submit(request, tenant=tenant)).job
        out = await Local(bench=bench, runner=runner(bench, ScriptedModel(reply))).finish(job)
    assert out.state is JobState.SUCCEEDED
    assert out.decision is not None
    assert out.decision.policy == NAME
    found = await Replayer(Present(decider=Decider())).add(out)
    assert found.status is Replay.SAME
    changed = out.model_copy(
        update={"decision": out.decision.model_copy(update={"features": {"passages": 1}})}
    )
    assert (await Replayer(Present(decider=Decider())).add(changed)).status is Replay.CHANGED
