"""Measures Posology beside paper-qa, LangChain, doubling and a plain RAG: one stub, one corpus, the same questions.

``python -m evals.peers --data ../shared/data --peer-python PYTHON --questions 100 --alone 20 --turns 3 [--before CHECKOUT]``

PYTHON is of an environment with paper-qa, LangChain (``langchain-community``, ``langchain-huggingface``, ``langchain-openai``),
``faiss-cpu``, ``sentence-transformers``, ``openai`` and ``pathway``. A peer whose packages it lacks is skipped and named.

The sides take turns, each in processes of its own. Posology answers by its router, and in the shape of LangChain's map-reduce
(8 extracts and a reduce), through Redis and worker processes; an earlier checkout does alike. The peers are in
:mod:`evals.peers.programs`. All retrieve 8 of the same abstracts with the same encoder. In the rows "8 needed", the stub
refuses to answer from fewer than 8 documents: doubling asks with 2, 4 and 8. It is re-enacted, and beside that Pathway's own
package (``pathway``) runs, where PYTHON has it. Output tokens are as long as the stub fills each side's form (a whole sentence wherever one is asked for), so
they say nothing of a model.

Each turn: 16 questions to warm up, ``--alone`` one after the other, all at once (64 at a time), and the last again from
a stub that replies to 2 % of the calls with 429 and to 1 % with 500. The ideal is the calls that had to wait for one
another times the seconds of a call. Processor time and peak memory are of all processes of a side but the stub.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evals.peers.report import Found, Turn, billed, show
from evals.peers.side import LATE, faults
from evals.peers.stub import answers, hesitates, usage
from posology.devices import cores
from posology.hub import published
from posology.testing.provider.load import LoadStub
from training.gold import pubmedqa

_NEEDED = "8 needed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One row of the tables."""

    name: str
    #: of a peer, its name in :mod:`evals.peers.programs`; ``None``: Posology
    program: str | None = None
    #: of Posology, in :mod:`evals.peers.side`
    shape: str = ""
    #: what the stub says to it
    reply: Callable[[Any], str] = answers


SIDES = (
    Side(name="Posology, router", shape="router"),
    Side(name="Posology, 8 extracts and a reduce", shape="same shape"),
    Side(name="LangChain, map-reduce", program="langchain"),
    Side(name="paper-qa, aquery", program="paper-qa"),
    Side(name="plain RAG of 40 lines", program="plain"),
    Side(name=f"Posology, router, {_NEEDED}", shape=LATE, reply=hesitates),
    Side(name=f"doubling as Pathway's, {_NEEDED}", program="doubling", reply=hesitates),
    Side(name=f"Pathway's adaptive RAG, {_NEEDED}", program="pathway", reply=hesitates),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Absent:
    """A side that could not run."""

    reason: str


class _Comparison:
    """The files of a run, and how to run one side."""

    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self._given = given
        self._folder = folder
        self._here = Path(__file__).parents[2]
        self._abstracts, self._questions = folder / "abstracts.jsonl", folder / "questions.json"
        self._index = str(folder / "index")

    def prepare(self) -> None:
        """Write the abstracts and the questions, and build Posology's index."""
        with gzip.open(self._given.data / "pool.jsonl.gz", "rt", encoding="utf-8") as lines:
            kept = itertools.islice(lines, self._given.records)
            self._abstracts.write_text("".join(kept), encoding="utf-8")
        asked = [one.text for one in pubmedqa(self._given.data)][: self._given.questions]
        self._questions.write_text(json.dumps(asked), encoding="utf-8")
        program = "from orchestrator.cli.app import main; main()"
        subprocess.run(
            [sys.executable, "-c", program, "ingest", str(self._abstracts), "--index", self._index],
            env=_environment(self._here),
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def run(self, side: Side, *, faulty: bool) -> Turn | _Absent:
        """Run a side once."""
        if side.program is None:
            return self._own(self._here, side.shape, faulty=faulty)
        return self._peer(side.program, side.reply, faulty=faulty)

    def before(self, shape: str) -> Turn:
        """Run the earlier checkout once, without faults; older ones cannot measure a question alone."""
        return self._own(self._given.before, shape, faulty=None)

    def _own(self, checkout: Path, shape: str, *, faulty: bool | None) -> Turn:
        given = self._given
        words: list[object] = [self._index, self._questions, shape, given.latency, given.workers]
        if faulty is not None:
            words += [0 if faulty else given.alone, int(faulty)]
        # checkouts from before the packages have it as a module
        grouped = (checkout / "evals" / "peers").is_dir()
        module = "evals.peers.side" if grouped else "evals.throughput_side"
        command = [sys.executable, "-m", module, *map(str, words)]
        return _json(command, checkout, _environment(checkout))

    def _peer(self, program: str, reply: Callable[[Any], str], *, faulty: bool) -> Turn | _Absent:
        if self._given.peer_python is None:
            return _Absent(reason="Pass --peer-python with the Python of the peers' environment.")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        alone = 0 if faulty else self._given.alone
        words = (
            program, self._folder / program, self._abstracts, published(), self._questions, alone,
        )  # fmt: skip
        with LoadStub(faults(self._given.latency, faulty=faulty), reply=reply, usage=usage) as stub:
            script = str(Path(__file__).with_name("programs.py"))
            command = [str(self._given.peer_python), script, *map(str, words), stub.openai_url]
            found = _json(command, None, environment | {"HF_HUB_OFFLINE": "1"})
            if "absent" in found:
                missing = ", ".join(found["absent"])
                return _Absent(reason=f"{missing} not installed for {self._given.peer_python}.")
            first, began = found.pop("first"), found.pop("began")
            return found | billed(stub.ledger(), alone=first, began=began)


def _environment(checkout: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("POSOLOGY_")}
    return kept | {"PYTHONPATH": str(checkout)}


def _json(
    command: Sequence[str], folder: Path | None, environment: Mapping[str, str]
) -> dict[str, Any]:
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _compare(given: argparse.Namespace, found: Found) -> None:
    with tempfile.TemporaryDirectory() as root:
        comparison = _Comparison(given, Path(root))
        comparison.prepare()
        for turn in range(given.turns):
            for side in SIDES:
                if side.name in found.skipped:
                    continue
                for faulty, turns in ((False, found.clean), (True, found.faulty))[: given.kinds]:
                    one = comparison.run(side, faulty=faulty)
                    if isinstance(one, _Absent):
                        found.skipped[side.name] = one.reason
                        break
                    turns.setdefault(side.name, []).append(one)
                    print(f"turn {turn + 1}: {side.name}: {json.dumps(one)}", file=sys.stderr)
                if given.before is not None and side.shape not in ("", LATE):
                    earlier = comparison.before(side.shape)
                    found.clean.setdefault(f"{side.name}, before", []).append(earlier)


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--peer-python", type=Path, help="Python of the peers' environment")
    parser.add_argument(
        "--before", type=Path, help="earlier checkout with this side of the comparison"
    )
    parser.add_argument("--questions", type=int, default=100, help="questions at once, a turn")
    parser.add_argument("--alone", type=int, default=20, help="of them, one after the other first")
    parser.add_argument("--records", type=int, default=300, help="abstracts in the index")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--workers", type=int, default=cores(), help="worker processes of Posology")
    parser.add_argument("--latency", type=float, default=0.5, help="seconds of a call")
    parser.add_argument(
        "--no-faults",
        dest="kinds",
        action="store_const",
        const=1,
        default=2,
        help="no run with faults",
    )
    parser.add_argument("--json", type=Path, help="also write the figures of every turn here")
    given = parser.parse_args()
    found = Found(questions=given.questions, alone=given.alone, latency=given.latency)
    _compare(given, found)
    if given.json is not None:
        given.json.write_text(json.dumps(asdict(found)), encoding="utf-8")
    show(found)


if __name__ == "__main__":
    main()
