"""Connections that keep what goes over them: requests without the words of passages, and replies."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from orchestrator.connections import Connections
from posology.errors import PosologyError
from posology.types import Call, Completion

if TYPE_CHECKING:
    from posology.llm.providers.table import Provider
    from posology.seams import Send


class Recording:
    """A :class:`~posology.seams.Send` that keeps what it was sent and what came back.

    Args:
        inner: sends it.
        kept: takes each request, its reply or error, and the seconds that it took.
    """

    def __init__(self, inner: Send, kept: list[dict[str, Any]]) -> None:
        self._inner, self._kept = inner, kept

    async def __call__(self, call: Call, *, attempt_id: str | None = None) -> Completion:
        """Send a call."""
        began = time.perf_counter()
        row = _request(call)
        self._kept.append(row)
        try:
            found = await self._inner(call, attempt_id=attempt_id)
        except PosologyError as error:
            row |= {"error": type(error).__name__, "message": str(error)[:300]}
            raise
        finally:
            row["seconds"] = round(time.perf_counter() - began, 2)
        usage = found.usage
        row |= {
            "reply": found.text,
            "finish": found.finish.value,
            "tokens_in": None if usage is None else usage.total_input,
            "tokens_out": None if usage is None else usage.total_output,
        }
        return found

    async def aclose(self) -> None:
        """Close the connections."""
        close = getattr(self._inner, "aclose", None)
        if close is not None:
            await close()


def _request(call: Call) -> dict[str, Any]:
    """Return a call as a row: what it is read by, without the words of passages."""
    return {
        "stage": call.stage.value,
        "prompt": f"{call.prompt.name}@{call.prompt.digest}",
        "quotes": call.quotes,
        "max_tokens": call.max_tokens,
        "excerpts": [
            {"id": one.passage.id, "sentences": [[s.start, s.end] for s in one.sentences]}
            for one in call.excerpts
        ],
    }


class Recorded(Connections):
    """Connections that record what goes over them."""

    def __init__(self, *args: Any, kept: list[dict[str, Any]], **more: Any) -> None:
        super().__init__(*args, **more)
        self._kept = kept

    def _connect(self, provider: Provider) -> Send:
        return Recording(super()._connect(provider), self._kept)
