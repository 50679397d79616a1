"""Lines of Ollama's own chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posology.llm.providers.fields import section
from posology.llm.providers.streams.assembly import Assembly


class OllamaAssembly(Assembly):
    """Puts lines together into the body of a reply, whose counts stand in the last line."""

    CUT = b'{"done": true, "done_reason": "length"}'

    def __init__(self) -> None:
        super().__init__()
        #: texts of the message by field, in pieces
        self._pieces: dict[str, list[str]] = {}

    def _take(self, event: dict[str, Any]) -> None:
        if self._fault(event):
            return
        for name, value in section(event, "message").items():
            if isinstance(value, str) and name != "role":
                self._pieces.setdefault(name, []).append(value)
                self._wrote(value)
        self._fields |= {name: value for name, value in event.items() if name != "message"}
        self.done = self.finished = event.get("done") is True

    def _content(self) -> Mapping[str, Any]:
        if not self._pieces:
            return {}
        texts = {name: "".join(pieces) for name, pieces in self._pieces.items()}
        return {"message": {"role": "assistant", **texts}}
