"""Blows of a run, drawn from its seed: the same seed and piece give the same blows at the same times."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from orchestrator.stack.supervisor import RestartPolicy

#: shares of requests that go wrong, by the provider's weather
WEATHERS: dict[str, dict[str, float]] = {
    "fair": {"cut after": 0.01, "500": 0.01},
    "rate limits": {"429": 0.6},
    "errors": {"500": 0.3, "503": 0.2},
    "hangs": {"hang": 0.2},
    "slow": {"drip": 0.4, "trickle": 0.1},
    "cuts": {"cut before": 0.15, "cut after": 0.15, "cut within": 0.15},
    "broken streams": {"stream cut": 0.12, "stream ended": 0.12, "stream silent": 0.05, "stream failed": 0.12},
    "nonsense": {"malformed": 0.25, "no usage": 0.25},
    "gateway": {"zero usage": 0.25, "429 within": 0.15, "502 within": 0.15},
    "refusals": {"refusal": 0.5},
    "retired": {"retired": 0.4},
    "dishonest": {"beyond": 0.1},
    "everything": dict.fromkeys(
        ("429", "500", "hang", "drip", "cut before", "cut after", "cut within", "malformed", "no usage", "zero usage", "429 within",
         "502 within", "refusal", "stream cut", "stream failed"),
        0.04,
    ),
}  # fmt: skip
#: weights of kinds of blows
WEIGHTS = {
    "kill worker": 30, "kill api": 8, "kill ingest": 3, "stop worker": 10, "stop api": 4, "kill redis": 5,
    "restart redis": 3, "stop redis": 4, "fill redis": 5, "fill disk": 3, "shift clock": 5, "cut network": 6, "slow network": 4, "weather": 25,
    "sync": 5, "rebuild": 2, "drop versions": 4, "change prices": 3,
    "fill index": 3, "lock index": 2, "fill uploads": 3, "lock uploads": 2, "stall index": 3, "stall uploads": 2,
    "slow index": 2, "slow uploads": 1,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Blow:
    """Something that goes wrong."""

    #: seconds since the piece began
    due: float
    deed: str
    #: number of the process, where there are several
    target: int
    #: seconds that it lasts, for those that do
    lasts: float
    #: of the provider
    weather: str


def blows(
    seed: str, seconds: float, every: float, kinds: Collection[str] = WEIGHTS.keys()
) -> list[Blow]:
    """Draw the blows of a piece.

    Args:
        seed: of the run and the piece.
        seconds: length of the piece.
        every: mean seconds between two blows.
        kinds: of blows.
    """
    draw = random.Random(f"blows:{seed}")
    deeds, weights = zip(*((d, w) for d, w in WEIGHTS.items() if d in kinds), strict=True)
    found: list[Blow] = []
    at = draw.expovariate(1 / every)
    while at < seconds:
        deed = draw.choices(deeds, weights)[0]
        found.append(
            Blow(
                due=at,
                deed=deed,
                target=draw.randrange(100),
                # some outlast a lease, some do not
                lasts=draw.choice((0.5, 2.0, 4.0, 9.0)),
                weather=draw.choice(list(WEATHERS)),
            )
        )
        at += draw.expovariate(1 / every)
    return found


class Sparing:
    """Kills of one part of the stack, which stay below the ends at which ``posology up`` gives up.

    All processes of a part are counted as one. Two ends are left to causes that are no kill, and the time is twice that
    of the supervisor, which may notice kills late and close together.
    """

    def __init__(self) -> None:
        policy = RestartPolicy()
        self._most, self._within = policy.ends - 2, 2 * policy.within
        self._kills = deque[float]()

    def may_kill(self, now: float) -> bool:
        """Return whether one more kill is possible, and count it if so.

        Args:
            now: seconds of a monotonic clock.
        """
        while self._kills and now - self._kills[0] > self._within:
            self._kills.popleft()
        if len(self._kills) >= self._most:
            return False
        self._kills.append(now)
        return True
