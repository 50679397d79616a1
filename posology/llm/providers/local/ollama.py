"""Ollama's own API, since its OpenAI endpoint sets no window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posology.llm.providers.fields import believed, count, fields_of, section
from posology.llm.providers.local.adapter import LocalAdapter
from posology.llm.providers.local.kinds import WINDOW, Kind
from posology.llm.providers.local.servers import OllamaModel, Served, read_ollama_model
from posology.llm.providers.replies.faults import Fault
from posology.llm.providers.replies.finishes import finish_of
from posology.llm.providers.replies.messages import said_in
from posology.llm.providers.replies.reader import Reply
from posology.llm.providers.streams.assembly import Assembly
from posology.llm.schema import response_schema
from posology.types import Call, Completion, Tier, Usage


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


class OllamaAdapter(LocalAdapter):
    """A :class:`~posology.seams.Send` over ``/api/chat``: each call names the window that the model is loaded with.

    That is the configured one; else the Modelfile's; else the one that it is loaded with, and at least
    :data:`~posology.llm.providers.local.kinds.WINDOW`. It is never more than the model was trained to read.

    Args:
        kind: of the server.
        window: configured tokens of input and output together; ``None``: none are.
        options: of :class:`~posology.llm.providers.local.adapter.LocalAdapter`.
    """

    API = ""

    def __init__(self, kind: Kind, *, window: int | None, **options: Any) -> None:
        super().__init__(kind, **options)
        self._window = window
        self._models: dict[str, OllamaModel] = {}
        self._windows: dict[str, int] = {}

    def path(self, call: Call) -> str:  # noqa: ARG002 - as the base's
        """Return the path of a call's request."""
        return "/api/chat"

    async def window(self, model: Served) -> int | None:
        """Return the window that calls name for a model."""
        name = model.name
        if name not in self._models:
            reply = await self.request(
                "post", "/api/show", model=f"{self.provider}:{name}", body={"model": name}
            )
            self._models[name] = read_ollama_model(reply.body)
        known = self._models[name]
        window = self._window or known.window or max(WINDOW, model.window or 0)
        self._windows[name] = min(window, known.trained or window)
        return self._windows[name]

    def body(self, call: Call) -> dict[str, Any]:
        """Return the body of a call's request, whose window :meth:`window` has set."""
        name = self._name(call.model)
        body: dict[str, Any] = {
            "model": name,
            "messages": [{"role": str(m.role), "content": m.content} for m in call.messages],
            # newer servers refuse what does not fit; older ones cut it, which their count of tokens shows
            "truncate": False,
            "shift": False,
            "stream": False,
            "options": {
                "num_ctx": self._windows[name],
                "num_predict": call.max_tokens,
                "temperature": call.temperature or 0,
            },
        }
        if call.schema is not None and self._native_schema:
            body["format"] = response_schema(call.schema).schema
        if call.effort is not None and self._models[name].thinks:
            body["think"] = (
                call.effort if call.effort in ("low", "medium", "high") else call.effort != "none"
            )
        return body

    def read(self, reply: Reply, model: str, *, tier: Tier = "standard") -> Completion:  # noqa: ARG002 - as the base's
        """Return the completion of a reply.

        Raises:
            MalformedReply: the reply is not one of Ollama's.
            ProviderError: it holds an error instead.
        """
        message = reply.body.get("message")
        content = said_in(message) if isinstance(message, dict) else None
        wrote = content is not None and bool(content.text or content.reasoning)
        known: dict[str, Any] = {"model": model, "usage": self.usage_of(reply.body, wrote=wrote)}
        if (fault := Fault.within(reply.body, answered=content is not None)) is not None:
            raise self.told(reply, fault, wrote=wrote, **known)
        if content is None:
            reason = f"it has no message (its fields are {fields_of(reply.body)})"
            raise self.malformed(reason, request_id=reply.request_id, **known)
        if content.misplaced:
            raise self.useless(content.misplaced, request_id=reply.request_id, **known)
        return self._completion(
            reply,
            text=content.text,
            finish=finish_of(reply.body.get("done_reason")),
            served="standard",
            **known,
        )

    def stream_fields(self) -> Mapping[str, Any]:
        """Return the field with which a request asks for a stream, which is the default."""
        return {"stream": True}

    def assembly(self) -> OllamaAssembly:
        """Return what puts a streamed reply together."""
        return OllamaAssembly()

    def usage_of(self, body: Mapping[str, Any], *, wrote: bool = False) -> Usage | None:
        """Return the usage of a reply; ``None``: unknown. Its reasoning is a part of its output that is not told apart."""
        prompt, output = (count(body.get(name)) for name in ("prompt_eval_count", "eval_count"))
        if prompt is None or output is None:
            return None
        return believed(Usage(input=prompt, output=output), wrote=wrote)
