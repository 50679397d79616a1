"""How many tokens a call takes in: a best count, and a low one. The bound is another's business."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from posology.hub import DEFAULT, PACKAGED
from posology.llm.models import parse
from posology.llm.schema import response_schema
from posology.seams import TokenCounter
from posology.text.tokens import approximate, wordpiece_counter
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
#: what providers set around each message, and around all of them
PER_MESSAGE, PER_CALL = 4, 3
#: texts and schemas whose count is kept: the templates' own, which are in every call
_KEPT = 64


class Counting:
    """Counts calls with the tokenizer at hand, and scales to those that are not.

    The offline reader counts with the same tokenizer, so there the counts are exact.

    Args:
        count: of the packaged encoder.
        native_schema: whether providers are sent the schema of a reply; it counts as input.
    """

    def __init__(self, count: TokenCounter, *, native_schema: bool = True) -> None:
        self._count = count
        self._native_schema = native_schema
        # system prompts are the same in every call
        self._constant = lru_cache(maxsize=_KEPT)(count)

    def text(self, messages: Sequence[Message], model: str) -> float:
        """Tokens of the messages' texts, as the model's tokenizer counts them."""
        return self._texts(messages) * (1.0 if _exact(model) else SCALE)

    def expected(self, call: Call) -> float:
        """All tokens that the provider will count, at best guess."""
        return self.text(call.messages, call.model) + self.around(call)

    def around(self, call: Call) -> float:
        """Those of them that stand in no message."""
        if _exact(call.model):
            return 0.0
        form = 0 if call.schema is None or not self._native_schema else _schema(call.schema)
        return form + PER_CALL + PER_MESSAGE * len(call.messages)

    def low(self, call: Call) -> float:
        """Hardly fewer tokens than the provider will count."""
        return self._texts(call.messages) * (1.0 if _exact(call.model) else LOW_SCALE)

    def _texts(self, messages: Sequence[Message]) -> int:
        return sum(
            self._constant(m.content) if m.role is Role.SYSTEM else self._count(m.content)
            for m in messages
        )


def packaged_counter() -> TokenCounter:
    """The packaged encoder's tokenizer; where it is not installed, an estimate from the length."""
    try:
        return wordpiece_counter(PACKAGED[DEFAULT]() / "tokenizer.json")
    except ImportError:
        return approximate


def _exact(model: str) -> bool:
    return parse(model).provider == "offline"


@lru_cache(maxsize=_KEPT)
def _schema(schema: type[BaseModel]) -> float:
    counter = _schema_counter()
    return counter(json.dumps(response_schema(schema).schema)) * SCHEMA_SCALE


@lru_cache(maxsize=1)
def _schema_counter() -> TokenCounter:
    return packaged_counter()
