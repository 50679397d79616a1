"""Input tokens of a call: an expected and a low count. Bounds are in :mod:`posology.budget.bounds`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from posology.hub import PACKAGED
from posology.llm.models.names import parse
from posology.llm.schema import response_schema
from posology.seams import TokenCounter
from posology.text.tokens import wordpiece_counter
from posology.types import Call, Message, Role

if TYPE_CHECKING:
    from pydantic import BaseModel

#: Providers' tokens for one of the packaged encoder's. Over 300 prompts of medical abstracts: 0.944 to
#: 0.973 on average for OpenAI's cl100k and o200k and Anthropic's last published tokenizer; 5th to 95th
#: percentile of a prompt 0.921 to 0.998.
SCALE = 0.96
#: fewer than of any of these prompts (0.903)
LOW_SCALE = 0.90
#: the same of the JSON of a schema, 0.73 to 0.74 of o200k
SCHEMA_SCALE = 0.74
#: tokens that providers add to each message, and to each call
PER_MESSAGE, PER_CALL = 4, 3
#: cached counts of texts and schemas: those of templates, which are in every call
_KEPT = 64


class Counting:
    """Counts tokens with the packaged tokenizer, scaled to those of providers.

    The offline reader uses the same tokenizer, so its counts are exact.

    Args:
        count: token counter of the packaged encoder.
        native_schema: whether providers receive the schema of a reply, which counts as input.
    """

    def __init__(self, count: TokenCounter, *, native_schema: bool = True) -> None:
        self._count = count
        self._native_schema = native_schema
        # system prompts are the same in every call
        self._constant = lru_cache(maxsize=_KEPT)(count)

    def text(self, messages: Sequence[Message], model: str) -> float:
        """Return the expected tokens of the messages' texts, by the model's tokenizer."""
        return self._texts(messages) * (1.0 if _exact(model) else SCALE)

    def expected(self, call: Call) -> float:
        """Return the expected input tokens of a call, as the provider counts them."""
        return self.text(call.messages, call.model) + self.around(call)

    def around(self, call: Call) -> float:
        """Return the expected input tokens outside the messages' texts."""
        if _exact(call.model):
            return 0.0
        form = 0 if call.schema is None or not self._native_schema else _schema(call.schema)
        return form + PER_CALL + PER_MESSAGE * len(call.messages)

    def low(self, call: Call) -> float:
        """Return a low count of input tokens."""
        return self._texts(call.messages) * (1.0 if _exact(call.model) else LOW_SCALE)

    def _texts(self, messages: Sequence[Message]) -> int:
        return sum(
            self._constant(m.content) if m.role is Role.SYSTEM else self._count(m.content)
            for m in messages
        )


def packaged_counter() -> TokenCounter:
    """Return the packaged encoder's token counter."""
    return wordpiece_counter(PACKAGED / "tokenizer.json")


def _exact(model: str) -> bool:
    return parse(model).provider == "offline"


@lru_cache(maxsize=_KEPT)
def _schema(schema: type[BaseModel]) -> float:
    counter = _schema_counter()
    return counter(json.dumps(response_schema(schema).schema)) * SCHEMA_SCALE


@lru_cache(maxsize=1)
def _schema_counter() -> TokenCounter:
    return packaged_counter()
