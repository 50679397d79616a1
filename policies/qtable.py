"""The Q-table of LeanContext: how much of its context a question needs, learned from rewards.

After Arefeen et al., "LeanContext", algorithms 1 and 2 and "Details of RL": a state is the centroid nearest
to what context and question have in common, an action is the share of the sentences that is kept whole, and
the value of an action in a state is the mean of the rewards that it brought there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.errors import PolicyMismatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.types import Retrieval

NAME = "qtable"
#: what a state is made of (table 5): v_c − v_q, which the paper uses; their cosine; v_c ⊕ v_q
STATES = ("difference", "cosine", "concatenation")
#: shares of the sentences that are kept whole (0 to 40 %), and 1: nothing is compressed
ACTIONS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 1.0)
#: what the content of a table means; others are not read
FORMAT = 1
#: nothing is compressed where too little is known: dear, and never wrong
FALLBACK = 1.0
#: rewards without which the mean of an action says little
LEAST_VISITS = 5
#: characters of a digest
_DIGEST = 16
#: how far from 1 the length of a vector may be that counts as 1: float16 keeps unit vectors within 0.001
_ROUNDING = 2e-3


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class QTable:
    """What was learned, and of what: S states, A actions. Tables of one digest decide alike.

    Raises:
        ValueError: the parts do not fit each other.
    """

    #: one of :data:`STATES`
    kind: str
    #: shape ``(S, width)``, float32; the width is the dimension of the embedder, twice it, or 1 for cosine
    centroids: NDArray[np.float32]
    #: shares that are kept, 0 to 1, growing; 1.0 is direct RAG
    actions: tuple[float, ...]
    #: mean reward of each action in each state, shape ``(S, A)``, float64; NaN where there was none
    q: NDArray[np.float64]
    #: rewards behind each value, shape ``(S, A)``, int64
    visits: NDArray[np.int64]
    #: weight of the answer's quality against the tokens' share in a reward, 0 to 1
    alpha: float
    #: whose vectors the states are of
    embedder: str
    #: what reduced the contexts
    compressor: str
    #: whose answers were rewarded, ``provider:name``
    model: str
    #: passages that were retrieved for a question
    k: int
    #: digest of each prompt that was used, by its name
    prompts: Mapping[str, str]
    #: digest of the questions that it was trained on
    data: str
    #: a state decides when each of its actions has as many rewards
    least_visits: int
    #: share that is kept in states which do not
    fallback: float
    #: UTC; no part of the digest
    created: datetime
    #: digest of the table from which it came by feedback; ``None``: it was trained
    parent: str | None = None
    #: identity of all of the content but ``created``, 16 hexadecimal digits
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        for name, kind in (("centroids", "<f4"), ("q", "<f8"), ("visits", "<i8")):
            array = np.array(getattr(self, name), dtype=kind, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        # 1 and 1.0 are one value, and are to have one digest
        object.__setattr__(self, "actions", tuple(float(share) for share in self.actions))
        object.__setattr__(self, "alpha", float(self.alpha))
        object.__setattr__(self, "fallback", float(self.fallback))
        object.__setattr__(self, "prompts", MappingProxyType(dict(self.prompts)))
        fault = _fault(self)
        if fault is not None:
            raise ValueError(fault)
        object.__setattr__(self, "digest", _digest(self))

    @property
    def states(self) -> int:
        """How many there are."""
        return len(self.centroids)

    @property
    def dim(self) -> int | None:
        """Length of the vectors that it is for; ``None``: any."""
        width = int(self.centroids.shape[1])
        match self.kind:
            case "difference":
                return width
            case "concatenation":
                return width // 2
            case _:
                return None

    def best(self, state: int) -> int | None:
        """The action of the highest value, of equal ones the cheapest; ``None``: too little is known.

        An action that was tried less often than the others cannot be compared with them: one reward short,
        and the whole state falls back.
        """
        if self.visits[state].min() < self.least_visits:
            return None
        return int(np.argmax(self.q[state]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """What a Q-table chose, and of what."""

    #: share of the sentences that is kept whole; 1: nothing is compressed
    keep: float
    #: a sentence for a reader
    reason: str
    #: whether it is the stated default, since too little is known of the state
    fallback: bool
    state: int
    #: value of each action in that state; ``None``: never tried
    values: tuple[float | None, ...]
    #: rewards behind each
    visits: tuple[int, ...]


def state_vector(retrieval: Retrieval, kind: str) -> NDArray[np.float32]:
    """What context and question have in common (algorithm 1, line 4; table 5).

    The context's vector is the mean of its passages' vectors, of unit length: nothing but the question is
    embedded for it. All are made to unit length first where their embedder gives others.

    Args:
        retrieval: at least one passage.
        kind: one of :data:`STATES`.

    Returns:
        Shape ``(dim,)`` for a difference, ``(1,)`` for a cosine, ``(2 * dim,)`` for a concatenation.

    Raises:
        PolicyMismatch: nothing was retrieved: there is no context to keep a share of.
        ValueError: there is no such kind.
    """
    if not retrieval.passages:
        raise PolicyMismatch(
            "the Q-table was asked about a question without passages: there is nothing to compress",
            policy=NAME,
        )
    query = _unit(retrieval.query_vector)
    own = [_unit(item.vector) for item in retrieval.passages]
    mean = np.stack(own).mean(axis=0, dtype=np.float64)
    norm = float(np.linalg.norm(mean))
    # opposite vectors cancel out: such a context is like no other
    context: NDArray[np.float32] = (mean / norm if norm else mean).astype(np.float32)
    match kind:
        case "difference":
            difference: NDArray[np.float32] = context - query
            return difference
        case "cosine":
            return np.array([np.dot(context, query)], np.float32)
        case "concatenation":
            return np.concatenate([context, query])
        case _:
            raise ValueError(f"no state {kind!r}: choose {', '.join(STATES)}")


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vector's direction; what is of unit length but for rounding stays as it is, bit by bit."""
    found = np.asarray(vector, np.float32)
    norm = float(np.linalg.norm(found))
    return found if not norm or abs(norm - 1) < _ROUNDING else (found / norm).astype(np.float32)


def nearest(centroids: NDArray[np.float32], vector: NDArray[np.float32]) -> tuple[int, float]:
    """The nearest centroid by Euclidean distance, of equally near ones the first, and the distance.

    Args:
        centroids: shape ``(S, width)``.
        vector: shape ``(width,)``.
    """
    distances = np.linalg.norm(centroids.astype(np.float64) - vector.astype(np.float64), axis=1)
    state = int(np.argmin(distances))
    return state, float(distances[state])


def observe(table: QTable, retrieval: Retrieval) -> dict[str, Any]:
    """What the table looks at, for the record: ``qtable.state``, ``qtable.distance``, ``qtable.table``.

    Raises:
        PolicyMismatch: nothing was retrieved, or the vectors are of another length than the table's.
    """
    vector = state_vector(retrieval, table.kind)
    width = table.centroids.shape[1]
    if len(vector) != width:
        raise PolicyMismatch(
            f"the Q-table was trained with {table.embedder}, whose vectors have {table.dim} numbers, and "
            f"the question's has {len(retrieval.query_vector)}: train one with this index",
            policy=NAME,
        )
    state, distance = nearest(table.centroids, vector)
    return {
        "qtable.state": state,
        "qtable.distance": distance,
        "qtable.table": table.digest,
    }


def choose(table: QTable, features: Mapping[str, Any]) -> Choice:
    """Choose from what :func:`observe` found (algorithm 2, lines 2 and 3), and from nothing else.

    Raises:
        PolicyMismatch: another table was looked at, or no state of this one is named.
    """
    state, looked_at = features.get("qtable.state"), features.get("qtable.table")
    if looked_at != table.digest:
        raise PolicyMismatch(
            f"the record is of Q-table {looked_at}, and this is {table.digest}: name the file of that one",
            policy=NAME,
        )
    if not isinstance(state, int) or not 0 <= state < table.states:
        raise PolicyMismatch(
            f"the record names no state of Q-table {table.digest}: {state!r}", policy=NAME
        )
    action = table.best(state)
    values, visits = table.q[state], table.visits[state]
    keep = table.fallback if action is None else table.actions[action]
    return Choice(
        keep=keep,
        reason=_reason(table, state, action, keep),
        fallback=action is None,
        state=state,
        values=tuple(None if np.isnan(value) else float(value) for value in values),
        visits=tuple(int(count) for count in visits),
    )


def reward(*, tau: float, r: float, best: float, alpha: float) -> float:
    """−(1−α)τ + α(2r − r*) ("Details of RL", reward).

    Args:
        tau: share of the context's tokens that was shown, 0 to 1.
        r: quality of the answer, 0 to 1.
        best: r*, the quality that the whole context gives.
        alpha: weight of quality, 0 to 1.
    """
    return -(1 - alpha) * tau + alpha * (2 * r - best)


def updated(table: QTable, state: int, action: int, reward: float) -> QTable:
    """Q ← Q + (R − Q)/n, n counting this reward (algorithm 1, line 15).

    Args:
        table: it stays as it is.
        state: from 0.
        action: place in :attr:`QTable.actions`.
        reward: see :func:`reward`.
    """
    q, visits = table.q.copy(), table.visits.copy()
    visits[state, action] += 1
    old = q[state, action]
    q[state, action] = reward if np.isnan(old) else old + (reward - old) / visits[state, action]
    return replace(table, q=q, visits=visits)


def merged(table: QTable, counts: NDArray[np.int64], sums: NDArray[np.float64]) -> QTable:
    """The table with many rewards more, as if each had come by :func:`updated`.

    Args:
        table: it stays as it is.
        counts: of the rewards, shape ``(S, A)``.
        sums: of the rewards, shape ``(S, A)``; 0 where there was none.
    """
    visits = table.visits + counts
    total = np.where(table.visits > 0, table.q, 0.0) * table.visits + sums
    q = np.divide(total, visits, out=np.full(total.shape, np.nan), where=visits > 0)
    # where nothing came, not even the last digit changes
    return replace(table, q=np.where(counts > 0, q, table.q), visits=visits)


def strangers(
    table: QTable,
    *,
    model: str | None = None,
    compressor: str | None = None,
    k: int | None = None,
    prompts: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """In what a question differs from those that the table learned from, a sentence each.

    It may be used all the same: the paper finds a table of one number of passages good for others (table 4).

    Args:
        table: what was learned.
        model: that is to answer; ``None``, here and below: not compared.
        compressor: name of the one that is to reduce.
        k: passages that are retrieved.
        prompts: digest of each prompt, by its name.
    """
    said = []
    if model not in (None, table.model):
        said.append(f"it learned from answers of {table.model}, not of {model}")
    if compressor not in (None, table.compressor):
        said.append(f"it learned from contexts of {table.compressor}, not of {compressor}")
    if k not in (None, table.k):
        said.append(f"it learned from {table.k} passages a question, not from {k}")
    asked = sorted((prompts or {}).items())
    if changed := [name for name, digest in asked if table.prompts.get(name) != digest]:
        said.append(f"it learned with another wording of the prompt {', '.join(changed)}")
    return tuple(said)


def _reason(table: QTable, state: int, action: int | None, keep: float) -> str:
    kept = "nothing is compressed" if keep == 1 else f"{keep:.0%} of the sentences are kept whole"
    if action is None:
        least = int(table.visits[state].min())
        return (
            f"state {state} is little known ({least} rewards for an action, {table.least_visits} are "
            f"asked for): by default {kept}"
        )
    value = table.q[state, action]
    return f"{kept}, which is best in state {state}: a mean reward of {value:.3f}"


def _fault(table: QTable) -> str | None:
    shape = (len(table.centroids), len(table.actions))
    if table.kind not in STATES:
        return f"no state {table.kind!r}: choose {', '.join(STATES)}"
    if table.centroids.ndim != 2 or not table.centroids.size:
        return f"centroids of shape {table.centroids.shape}"
    if table.kind == "cosine" and table.centroids.shape[1] != 1:
        return "centroids of a cosine are one number each"
    if table.kind == "concatenation" and table.centroids.shape[1] % 2:
        return "centroids of a concatenation have two halves"
    if not np.isfinite(table.centroids).all():
        return "a centroid is no place"
    if not shape[1] or list(table.actions) != sorted(set(table.actions)):
        return "actions are shares, growing"
    if not all(0 <= share <= 1 for share in (*table.actions, table.fallback, table.alpha)):
        return "actions, the fallback and alpha are shares from 0 to 1"
    if table.q.shape != shape or table.visits.shape != shape:
        return f"values of shape {table.q.shape} and visits of {table.visits.shape}, not {shape}"
    if (table.visits < 0).any() or np.isinf(table.q).any():
        return "visits are counts, and values numbers"
    if (np.isnan(table.q) != (table.visits == 0)).any():
        return "an action has a value where it was tried, and nowhere else"
    if table.least_visits < 1 or table.k < 1:
        return "least visits and k are at least 1"
    if table.created.tzinfo is None:
        return "the time of creation names no zone"
    return None


def plain(table: QTable) -> dict[str, Any]:
    """What a table is but for its arrays, as JSON holds it: all of it is of the digest."""
    return {
        "format": FORMAT,
        "parent": table.parent,
        "kind": table.kind,
        "alpha": table.alpha,
        "embedder": table.embedder,
        "compressor": table.compressor,
        "model": table.model,
        "k": table.k,
        "prompts": dict(table.prompts),
        "data": table.data,
        "least_visits": table.least_visits,
        "fallback": table.fallback,
        "actions": table.actions,
    }


def _digest(table: QTable) -> str:
    said = plain(table) | {"shapes": [table.centroids.shape, table.q.shape]}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    # there are many NaNs, and all say the same
    q = np.where(np.isnan(table.q), np.nan, table.q)
    for array in (table.centroids, q, table.visits):
        digest.update(array.tobytes())
    return digest.hexdigest()[:_DIGEST]
