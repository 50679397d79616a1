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
#: tolerated deviation of a unit vector's length from 1: float16 keeps unit vectors within 0.001
_ROUNDING = 2e-3


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class QTable:
    """A learned table of S states and A actions. Tables of one digest decide alike.

    Raises:
        ValueError: the parts are inconsistent.
    """

    #: one of :data:`STATES`
    kind: str
    #: shape ``(S, width)``, float32; the width is the dimension of the embedder, twice it, or 1 for cosine
    centroids: NDArray[np.float32]
    #: shares to keep, 0 to 1, rising; 1.0 is direct RAG
    actions: tuple[float, ...]
    #: mean reward of each action in each state, shape ``(S, A)``, float64; NaN without rewards
    q: NDArray[np.float64]
    #: number of rewards of each value, shape ``(S, A)``, int64
    visits: NDArray[np.int64]
    #: weight of the answer's quality against the tokens' share in a reward, 0 to 1
    alpha: float
    #: name of the embedder of the states' vectors
    embedder: str
    #: name of the compressor that reduced the contexts
    compressor: str
    #: model of the rewarded answers, ``provider:name``
    model: str
    #: retrieved passages a question
    k: int
    #: name of each prompt → its digest
    prompts: Mapping[str, str]
    #: digest of the training questions
    data: str
    #: least rewards of each action for a state to decide
    least_visits: int
    #: share to keep in states with fewer rewards
    fallback: float
    #: time of creation, UTC; not in the digest
    created: datetime
    #: digest of the table that feedback changed into this one; ``None``: it was trained
    parent: str | None = None
    #: digest of the content without ``created``, 16 hexadecimal digits
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        for name, kind in (("centroids", "<f4"), ("q", "<f8"), ("visits", "<i8")):
            array = np.array(getattr(self, name), dtype=kind, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        # 1 and 1.0 must have one digest
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
        """Number of states."""
        return len(self.centroids)

    @property
    def dim(self) -> int | None:
        """Length of the embedder's vectors; ``None``: any."""
        width = int(self.centroids.shape[1])
        match self.kind:
            case "difference":
                return width
            case "concatenation":
                return width // 2
            case _:
                return None

    def best(self, state: int) -> int | None:
        """Return the action of the highest value, of equal ones the cheapest; ``None``: too few rewards.

        An action with too few rewards cannot be compared, so the whole state falls back.
        """
        if self.visits[state].min() < self.least_visits:
            return None
        return int(np.argmax(self.q[state]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Choice of a Q-table, with its alternatives."""

    #: share of the sentences to keep, 0 to 1; 1: nothing is compressed
    keep: float
    #: a sentence for a reader
    reason: str
    #: whether it is the fallback, because the state has too few rewards
    fallback: bool
    state: int
    #: value of each action in that state; ``None``: never tried
    values: tuple[float | None, ...]
    #: number of rewards of each action
    visits: tuple[int, ...]


def state_vector(retrieval: Retrieval, kind: str) -> NDArray[np.float32]:
    """Return the state vector of a context and a question (algorithm 1, line 4; table 5).

    The context's vector is the unit-length mean of its passages' vectors, so only the question is embedded. Vectors of
    other lengths are scaled to unit length first.

    Args:
        retrieval: at least one passage.
        kind: one of :data:`STATES`.

    Returns:
        Shape ``(dim,)`` for a difference, ``(1,)`` for a cosine, ``(2 * dim,)`` for a concatenation.

    Raises:
        PolicyMismatch: nothing was retrieved.
        ValueError: the kind is unknown.
    """
    if not retrieval.passages:
        raise PolicyMismatch(
            "the Q-table cannot decide for a question without passages",
            policy=NAME,
        )
    query = _unit(retrieval.query_vector)
    own = [_unit(item.vector) for item in retrieval.passages]
    mean = np.stack(own).mean(axis=0, dtype=np.float64)
    norm = float(np.linalg.norm(mean))
    # opposite vectors cancel out
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
            raise ValueError(f"kind must be one of {', '.join(STATES)} (got {kind!r})")


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale a vector to unit length; a vector of unit length up to rounding is unchanged, bit by bit."""
    found = np.asarray(vector, np.float32)
    norm = float(np.linalg.norm(found))
    return found if not norm or abs(norm - 1) < _ROUNDING else (found / norm).astype(np.float32)


def nearest(centroids: NDArray[np.float32], vector: NDArray[np.float32]) -> tuple[int, float]:
    """Return the nearest centroid by Euclidean distance, the first of equally near ones, and the distance.

    Args:
        centroids: shape ``(S, width)``.
        vector: shape ``(width,)``.
    """
    distances = np.linalg.norm(centroids.astype(np.float64) - vector.astype(np.float64), axis=1)
    state = int(np.argmin(distances))
    return state, float(distances[state])


def observe(table: QTable, retrieval: Retrieval) -> dict[str, Any]:
    """Return the table's features, for the record: ``qtable.state``, ``qtable.distance``, ``qtable.table``.

    Raises:
        PolicyMismatch: nothing was retrieved, or the vectors have another length than the table's.
    """
    vector = state_vector(retrieval, table.kind)
    width = table.centroids.shape[1]
    if len(vector) != width:
        raise PolicyMismatch(
            f"the Q-table was trained with {table.embedder} (vectors of {table.dim} numbers), but the question's "
            f"vector has {len(retrieval.query_vector)}: train a Q-table with this index",
            policy=NAME,
        )
    state, distance = nearest(table.centroids, vector)
    return {
        "qtable.state": state,
        "qtable.distance": distance,
        "qtable.table": table.digest,
    }


def choose(table: QTable, features: Mapping[str, Any]) -> Choice:
    """Choose by the features of :func:`observe` alone (algorithm 2, lines 2 and 3).

    Raises:
        PolicyMismatch: the features are of another table, or name no state of this one.
    """
    state, recorded = features.get("qtable.state"), features.get("qtable.table")
    if recorded != table.digest:
        raise PolicyMismatch(
            f"this decision was made with Q-table {recorded}, but {table.digest} is loaded: pass --qtable with the file of "
            f"{recorded}",
            policy=NAME,
        )
    if not isinstance(state, int) or not 0 <= state < table.states:
        raise PolicyMismatch(
            f"qtable.state must be a state of Q-table {table.digest} (got {state!r})", policy=NAME
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
    """Return −(1−α)τ + α(2r − r*) ("Details of RL", reward).

    Args:
        tau: share of the context's tokens that was shown, 0 to 1.
        r: quality of the answer, 0 to 1.
        best: r*, quality with the whole context, 0 to 1.
        alpha: weight of quality, 0 to 1.
    """
    return -(1 - alpha) * tau + alpha * (2 * r - best)


def merged(table: QTable, counts: NDArray[np.int64], sums: NDArray[np.float64]) -> QTable:
    """Return the table after many more rewards, as if each had come by itself: Q ← Q + (R − Q)/n (algorithm 1, line 15).

    Args:
        table: the table; unchanged.
        counts: numbers of rewards, shape ``(S, A)``.
        sums: sums of rewards, shape ``(S, A)``; 0 without rewards.
    """
    visits = table.visits + counts
    total = np.where(table.visits > 0, table.q, 0.0) * table.visits + sums
    q = np.divide(total, visits, out=np.full(total.shape, np.nan), where=visits > 0)
    # values without new rewards stay exact to the last bit
    return replace(table, q=np.where(counts > 0, q, table.q), visits=visits)


def strangers(
    table: QTable,
    *,
    model: str | None = None,
    compressor: str | None = None,
    k: int | None = None,
    prompts: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return the differences of a question from the table's training questions, a sentence each.

    The table may be used nevertheless: the paper finds a table for one number of passages good for others (table 4).

    Args:
        table: the table.
        model: model that answers; ``None``, here and below: not compared.
        compressor: name of the compressor.
        k: number of retrieved passages.
        prompts: name of each prompt → its digest.
    """
    found = []
    if model not in (None, table.model):
        found.append(f"it learned from answers of {table.model}, not of {model}")
    if compressor not in (None, table.compressor):
        found.append(f"it learned from contexts of {table.compressor}, not of {compressor}")
    if k not in (None, table.k):
        found.append(f"it learned from {table.k} passages a question, not from {k}")
    asked = sorted((prompts or {}).items())
    if changed := [name for name, digest in asked if table.prompts.get(name) != digest]:
        found.append(f"it learned with another wording of the prompt {', '.join(changed)}")
    return tuple(found)


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
        return f"kind must be one of {', '.join(STATES)} (got {table.kind!r})"
    if table.centroids.ndim != 2 or not table.centroids.size:
        return f"centroids of shape {table.centroids.shape}"
    if table.kind == "cosine" and table.centroids.shape[1] != 1:
        return "centroids of a cosine must be one number each"
    if table.kind == "concatenation" and table.centroids.shape[1] % 2:
        return "centroids of a concatenation must have an even length"
    if not np.isfinite(table.centroids).all():
        return "centroids must be finite"
    if not shape[1] or list(table.actions) != sorted(set(table.actions)):
        return "actions must be rising shares"
    if not all(0 <= share <= 1 for share in (*table.actions, table.fallback, table.alpha)):
        return "actions, fallback and alpha must be from 0 to 1"
    if table.q.shape != shape or table.visits.shape != shape:
        return f"values and visits must have shape {shape} (got {table.q.shape} and {table.visits.shape})"
    if (table.visits < 0).any() or np.isinf(table.q).any():
        return "visits must be at least 0, and values finite"
    if (np.isnan(table.q) != (table.visits == 0)).any():
        return "actions must have a value if and only if they have visits"
    if table.least_visits < 1 or table.k < 1:
        return "least_visits and k must be at least 1"
    if table.created.tzinfo is None:
        return "created must have a time zone"
    return None


def plain(table: QTable) -> dict[str, Any]:
    """Return a table without its arrays, as JSON values; all of them are in the digest."""
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
    content = plain(table) | {"shapes": [table.centroids.shape, table.q.shape]}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    # NaN has many bit patterns
    q = np.where(np.isnan(table.q), np.nan, table.q)
    for array in (table.centroids, q, table.visits):
        digest.update(array.tobytes())
    return digest.hexdigest()[:_DIGEST]
