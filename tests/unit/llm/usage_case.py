"""A reply of a provider, and what is to be made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from posology.types import Finish, Usage

MILLION = Decimal(10**6)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One reply, and what is to be made of it."""

    name: str
    model: str
    #: as it stands in the body; ``...``: the body has none
    usage: Any
    #: ``None``: unknown
    expected: Usage | None = None
    #: dollars, in the list prices of the model
    cost: Decimal | None = None
    #: the message of a chat completion, or the content blocks of a message
    said: Any = field(default="Yes.")
    #: ``None``: the ordinary one
    stop: str | None = None
    finish: Finish = Finish.STOP
    text: str = "Yes."
