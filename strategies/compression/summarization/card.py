"""Card of a fine-tuned model, in its folder: target ratio and measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from posology.errors import ModelUnavailable

#: name of the file; models of Hugging Face have none
FILE = "posology.json"
#: maximum input and output tokens (section 5.1)
TOKENS = 512


class Card(BaseModel):
    """Description of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    kind: Literal["summarization"] = "summarization"
    #: target share of a passage's words; ``None``: unknown
    share: float | None = Field(default=None, gt=0, lt=1)
    #: maximum input and output tokens
    tokens: int = Field(default=TOKENS, ge=8)
    #: name or folder of the initial model
    base: str = ""
    #: SHA-256 of the data set, the first 16 hex digits
    dataset: str = ""
    #: validation loss per token of each epoch
    losses: tuple[float, ...] = ()
    #: kept epoch, from 1
    best: int | None = None
    #: test loss per token
    test_loss: float | None = None
    #: compression ratio on the test set; ``None``: not measured
    left: float | None = Field(default=None, ge=0)
    #: seconds per summary on the device; ``None``: not measured
    seconds: float | None = Field(default=None, ge=0)
    #: device of the fine-tuning
    device: str = ""


def read_card(folder: Path) -> Card:
    """Read the card of a model's folder; an empty card if there is none.

    Raises:
        ModelUnavailable: the card cannot be read.
    """
    path = folder / FILE
    try:
        return Card.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Card()
    except (OSError, ValidationError) as error:
        raise ModelUnavailable(
            f"{path} is not the card of a summarization model: {error}", model=str(folder)
        ) from None


def write_card(card: Card, folder: Path) -> None:
    """Write the card to the model's folder."""
    (folder / FILE).write_text(card.model_dump_json(indent=2) + "\n", encoding="utf-8")
