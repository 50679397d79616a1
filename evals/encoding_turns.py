"""Blocks of passages by two or more backends in turns, each measured once and kept.

What a block took is kept beside what it gave, so that a run that was broken off goes on where it stopped, and the
figures of both runs are printed as one. They are of one machine: :func:`same_machine` refuses to go on elsewhere.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from posology.index.embedders.onnx.forward import cores

_TICK = os.sysconf("SC_CLK_TCK")
_LIBRARIES = ("numpy", "onnxruntime", "sentence-transformers", "tokenizers", "torch")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a block of one backend took."""

    #: passages
    items: int
    #: seconds of the clock
    wall: float
    #: seconds of all threads of this process on processors
    processor: float
    #: seconds of processors that others took meanwhile, the host of a virtual machine among them; ``None``: unknown
    others: float | None

    @property
    def speed(self) -> float:
        """Passages a second of the clock."""
        return self.items / self.wall


class Clock:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._begun = time.perf_counter(), time.process_time(), _busy()

    def cost(self, items: int) -> Cost:
        """Since it was made."""
        wall, own, busy = self._begun
        took = time.process_time() - own
        now = _busy()
        # both are counted in ticks, so that little work of others may come out below 0
        others = None if now is None or busy is None else max(now - busy - took, 0.0)
        return Cost(items=items, wall=time.perf_counter() - wall, processor=took, others=others)


def _busy() -> float | None:
    """Seconds in which a processor of this machine was not idle; ``None``: it does not say."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return None
    user, nice, system, _, _, interrupts, soft, stolen = map(int, first.split()[1:9])
    return (user + nice + system + interrupts + soft + stolen) / _TICK


def same_machine(folder: Path, describes: Mapping[str, str]) -> None:
    """Write down where and with what a run is made, or compare it with the run that is gone on with.

    Args:
        folder: where its blocks are kept.
        describes: each backend, for people.

    Raises:
        SystemExit: what is there was made elsewhere, or otherwise.
    """
    here = {
        "processor": _processor(),
        "cores": cores(),
        "libraries": {name: version(name) for name in _LIBRARIES},
        "backends": dict(describes),
    }
    print(f"{here['processor']}, {here['cores']} cores for each backend; {here['libraries']}")
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "machine.json"
    if not note.exists():
        _replace(note, json.dumps(here, indent=1))
    elif json.loads(note.read_text(encoding="utf-8")) != here:
        raise SystemExit(f"{folder} was measured elsewhere (machine.json): give another --work")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


class Turns:
    """The blocks of one stage, by several backends in turns.

    Args:
        stage: its name, which begins the names of its files.
        names: of the backends.
        sizes: passages of each block.
        folder: where what blocks took is kept.
    """

    def __init__(
        self, stage: str, names: Sequence[str], sizes: Sequence[int], folder: Path
    ) -> None:
        self.stage = stage
        self._names = list(names)
        self._sizes = list(sizes)
        self._folder = folder
        #: of each backend, by the block's number
        self.costs: dict[str, dict[int, Cost]] = {name: {} for name in names}

    def path(self, name: str, block: int, suffix: str) -> Path:
        """Where something of a block is kept."""
        return self._folder / f"{self.stage}-{name.replace(' ', '-')}-{block:04d}{suffix}"

    def run(
        self,
        work: Callable[[str, int], Cost],
        *,
        wanted: Callable[[str, int], bool] = lambda _name, _block: True,
    ) -> None:
        """Do all blocks that are not kept yet, and tell how long the others will take.

        Args:
            work: does a block by a backend; what it gives besides must be kept before it returns.
            wanted: whether a backend is to do a block at all.
        """
        todo = [
            (block, name)
            for block in range(len(self._sizes))
            # who comes first changes, for what the machine does as time goes by
            for name in rotated(self._names, block)
            if wanted(name, block)
        ]
        for block, name in list(todo):
            if (kept := self._kept(name, block)) is not None:
                self.costs[name][block] = kept
                todo.remove((block, name))
        done = sum(map(len, self.costs.values()))
        if done:
            self._say(f"{done} blocks were done before, {len(todo)} are to do")
        while todo:
            block, name = todo.pop(0)
            cost = work(name, block)
            _replace(self.path(name, block, ".json"), json.dumps(asdict(cost)))
            self.costs[name][block] = cost
            self._say(
                f"block {block + 1} of {len(self._sizes)}, {name}: {cost.items} in {cost.wall:.1f} s, "
                f"{cost.speed:.1f} a second, {cost.processor / cost.wall:.2f} cores; left {self._left(todo)}"
            )

    def _kept(self, name: str, block: int) -> Cost | None:
        path = self.path(name, block, ".json")
        if not path.exists():
            return None
        kept = Cost(**json.loads(path.read_text(encoding="utf-8")))
        # the last block of a shorter run is another one
        return kept if kept.items == self._sizes[block] else None

    def _left(self, todo: Sequence[tuple[int, str]]) -> str:
        """The time that the other blocks of this stage will take, if they are as quick as those before."""
        seconds = 0.0
        for name in {name for _, name in todo}:
            known = self.costs[name].values()
            if not known:
                return "unknown yet"
            each = sum(cost.wall for cost in known) / sum(cost.items for cost in known)
            seconds += each * sum(self._sizes[block] for block, of in todo if of == name)
        return f"{seconds / 60:.1f} min"

    def _say(self, what: str) -> None:
        print(f"[{self.stage}] {what}", file=sys.stderr, flush=True)

    def report(self, whole: int) -> None:
        """Print each backend's speed, in the blocks that all of them did.

        Args:
            whole: passages of all, whose time is extrapolated where they were not all done.
        """
        shared = set.intersection(*(set(costs) for costs in self.costs.values()))
        for name, costs in self.costs.items():
            if not shared:
                print(f"  {name:14} nothing to compare")
                continue
            both = [costs[block] for block in sorted(shared)]
            items, wall = sum(c.items for c in both), sum(c.wall for c in both)
            processor = sum(c.processor for c in both)
            rates = [c.speed for c in both]
            others = [c.others for c in both if c.others is not None]
            print(
                f"  {name:14} {items} passages in {wall:.1f} s: {items / wall:.2f} a second"
                f" (blocks {min(rates):.2f} to {max(rates):.2f}), {items / processor:.2f} a second of a processor;"
                f" {processor / wall:.2f} cores busy, others took"
                f" {'?' if not others else f'{sum(others) / wall:.2f}'};"
                f" {whole / (items / wall) / 60:.1f} minutes for {whole}"
                + ("" if items >= whole else " (extrapolated)")
            )
        first, *rest = self.costs
        if shared:
            for name in rest:
                ratios = [
                    sum(getattr(self.costs[first][b], of) for b in shared)
                    / sum(getattr(self.costs[name][b], of) for b in shared)
                    for of in ("wall", "processor")
                ]
                print(
                    f"  {name} is {ratios[0]:.2f} times as fast as {first}, {ratios[1]:.2f} by processor time"
                )


def rotated(names: Sequence[str], turn: int) -> list[str]:
    """Another one first at each turn."""
    start = turn % len(names)
    return [*names[start:], *names[:start]]


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A place to write a file at, which gets its name when it is whole."""
    draft = path.with_name(f"draft-{path.name}")
    yield draft
    draft.replace(path)


def _replace(path: Path, text: str) -> None:
    with written(path) as draft:
        draft.write_text(text, encoding="utf-8")
