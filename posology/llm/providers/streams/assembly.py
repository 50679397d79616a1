"""A streamed reply, put together into the body that the same reply has as a whole."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from posology.llm.calls import ReplyProgress
from posology.llm.providers.fields import count
from posology.llm.providers.replies.faults import Fault

#: what OpenAI's streams end with instead of an event
_END = b"[DONE]"
_NO_OBJECT = "an event of its stream is not a JSON object"
#: characters of a token, about, where an event has more than one
_CHARACTERS = 4


class NoReply(ValueError):
    """The bytes that came are no reply; the message says why."""


class Assembly(ABC):
    """Takes the events of one reply, in order.

    Every byte counts: this runs once for each token of a reply.
    """

    #: the event that ends a reply at its bound
    CUT: ClassVar[bytes]

    def __init__(self) -> None:
        #: whether the stream's last event came
        self.done = False
        #: whether the reply says why it ended: its text is whole, and at most its usage is missing
        self.finished = False
        #: whether the model wrote anything
        self.began = False
        #: fields of the body, without the reply's text and its usage
        self._fields: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        #: whether the usage is that of the whole reply
        self._counted = False
        #: whether an error came
        self._failed = False
        self._events = self._characters = 0
        self._written = list[str]()
        self._prompt: int | None = None
        self._read: int | None = None

    def feed(self, data: bytes) -> None:
        """Take the data of one event.

        Raises:
            NoReply: it is not a JSON object.
        """
        try:
            # of bytes, the library would first guess the encoding
            event = json.loads(data.decode())
        except (ValueError, RecursionError):
            if data.strip() != _END:
                raise NoReply(_NO_OBJECT) from None
            self.done = True
            return
        if isinstance(event, list) and len(event) == 1:
            # Gemini's errors
            (event,) = event
        if not isinstance(event, dict):
            raise NoReply(_NO_OBJECT)
        self._take(event)

    @property
    def ended(self) -> bool:
        """Whether the reply is whole, or failed by the provider's own words: otherwise it was cut."""
        return self.done or self.finished or self._failed

    @property
    def progress(self) -> ReplyProgress:
        """How far the reply is."""
        return ReplyProgress(
            prompt=self._prompt,
            read=self._read,
            written=max(self._events, self._characters // _CHARACTERS),
        )

    @property
    def written(self) -> str:
        """The text that the model wrote until now, of all fields."""
        return "".join(self._written)

    def cut(self) -> None:
        """End the reply here, as one that is cut at its bound; its usage stays unknown."""
        self.feed(self.CUT)

    def body(self) -> dict[str, Any]:
        """Return the body. The usage of a reply that broke off is left out: the provider may bill more."""
        whole = self._counted or (self.done and not self._failed)
        return {
            **self._fields,
            **self._content(),
            **({"usage": self._usage} if self._usage and whole else {}),
        }

    @abstractmethod
    def _take(self, event: dict[str, Any]) -> None:
        """Take one event."""

    @abstractmethod
    def _content(self) -> Mapping[str, Any]:
        """Return the fields of the body that hold the reply."""

    def _fault(self, event: Mapping[str, Any]) -> bool:
        """Take the error that an event may be, in whatever form."""
        failed = Fault.within(event) is not None
        # what comes behind an error takes it back no more
        self._failed = self._failed or failed
        if failed:
            self._fields["error"] = event.get("error") or event
            # beside an error, it is what the failed reply is billed
            if isinstance(usage := event.get("usage"), dict):
                self._usage, self._counted = usage, True
        return failed

    def _wrote(self, text: str) -> None:
        if text:
            self.began = True
            self._events += 1
            self._characters += len(text)
            self._written.append(text)

    def _reads(self, progress: Mapping[str, Any]) -> None:
        """Take llama.cpp's progress of reading the prompt."""
        self._prompt, self._read = count(progress.get("total")), count(progress.get("processed"))
