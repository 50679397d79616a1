"""What a fine-tuned model says of itself, beside its weights: for which share it was made, and how it did."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from posology.errors import ModelUnavailable

#: in the model's folder; models of the hub have none
FILE = "posology.json"
#: tokens that go in and come out at most (section 5.1)
TOKENS = 512


class Card(BaseModel):
    """A model's own description."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    kind: Literal["summarization"] = "summarization"
    #: of a passage's words that its summaries were made to have; ``None``: nobody knows
    share: float | None = Field(default=None, gt=0, lt=1)
    #: tokens that go in and come out at most
    tokens: int = Field(default=TOKENS, ge=8)
    #: name or folder of the model that was fine-tuned
    base: str = ""
    #: SHA-256 of the data set, the first 16 hex digits
    dataset: str = ""
    #: loss a token on the validation set, an epoch each, and the epoch that is kept, from 1
    losses: tuple[float, ...] = ()
    best: int | None = None
    #: loss a token on the test set
    test_loss: float | None = None
    #: share of the words that summaries of the test set had; ``None``: not measured
    left: float | None = Field(default=None, ge=0)
    #: seconds a summary where it was fine-tuned, and on what; ``None``: not measured
    seconds: float | None = Field(default=None, ge=0)
    device: str = ""


def read_card(folder: Path) -> Card:
    """The card of a model's folder; one that knows nothing where there is none.

    Raises:
        ModelUnavailable: there is one that cannot be read.
    """
    path = folder / FILE
    try:
        return Card.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Card()
    except (OSError, ValidationError) as error:
        raise ModelUnavailable(
            f"{path} does not describe a summarization model: {error}", model=str(folder)
        ) from None


def write_card(card: Card, folder: Path) -> None:
    """Write it beside the weights."""
    (folder / FILE).write_text(card.model_dump_json(indent=2) + "\n", encoding="utf-8")
