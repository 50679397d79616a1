"""Events of Anthropic's messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posology.llm.providers.fields import section
from posology.llm.providers.streams.assembly import Assembly

#: the field of a block that a delta adds to, by the kind of the delta, and the field of the delta
_ADDED = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("input", "partial_json"),
}
#: fields of a block that the model wrote
_WRITTEN = ("text", "thinking", "input")


class MessageAssembly(Assembly):
    """Puts events together into the body of a message."""

    CUT = b'{"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}'

    def __init__(self) -> None:
        super().__init__()
        #: content blocks by their places, with the pieces of their texts
        self._blocks: dict[Any, tuple[dict[str, Any], dict[str, list[str]]]] = {}

    def _take(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "content_block_delta":
                self._add(event.get("index"), section(event, "delta"))
            case "content_block_start":
                self._blocks[event.get("index")] = (dict(section(event, "content_block")), {})
            case "message_start":
                message = section(event, "message")
                self._fields |= {k: v for k, v in message.items() if k != "usage"}
                self._usage |= section(message, "usage")
            case "message_delta":
                self._fields |= section(event, "delta")
                self.finished = self._fields.get("stop_reason") is not None
                # cumulative; the counts at the start are those of a reply that has only begun
                usage = section(event, "usage")
                self._usage |= {k: v for k, v in usage.items() if v is not None}
                self._counted = bool(usage)
            case "message_stop":
                self.done = True
            case "message":
                # a server that does not stream
                self._fields, self._usage = dict(event), dict(section(event, "usage"))
                self.done = self.began = True
            case "ping" | "content_block_stop":
                pass
            case _:
                self._fault(event)

    def _add(self, place: object, delta: Mapping[str, Any]) -> None:
        held, name = _ADDED.get(str(delta.get("type")), ("", ""))
        given = delta.get(name)
        if not isinstance(given, str):
            return
        _, pieces = self._blocks.setdefault(place, ({"type": held}, {}))
        pieces.setdefault(held, []).append(given)
        if held in _WRITTEN:
            self._wrote(given)

    def _content(self) -> Mapping[str, Any]:
        if not self._blocks:
            return {}
        return {"content": [_block(*block) for block in self._blocks.values()]}


def _block(begun: Mapping[str, Any], pieces: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return a block with the texts that it began with and those that were added."""
    block = dict(begun)
    for held, added in pieces.items():
        start = block.get(held)
        block[held] = "".join((start if isinstance(start, str) else "", *added))
    return block
