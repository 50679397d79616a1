"""Lists of prices: the provider bills by one of them, and the operator's file holds one."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path

MODEL = "openai:gpt-4o-mini"
#: nano-dollars per token of input and output; a batch costs half
LISTS = ((150, 600), (200, 800), (120, 480), (300, 1_200))
#: share of the price that the tiers flex and batch cost
BATCH = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceList:
    """A list that the operator's file holds."""

    #: number in :data:`LISTS`
    number: int
    #: of the file, as the ledger's entries name it
    digest: str
    #: nano-dollars per token
    input: int
    output: int

    def record(self) -> dict[str, int | str]:
        """Return it as the checker reads it."""
        return asdict(self)


def write_prices(path: Path, number: int) -> PriceList:
    """Write the operator's file, whole or not at all."""
    price_in, price_out = LISTS[number]
    # nano-dollars per token are thousandths of dollars per million tokens
    text = "\n".join((
        f'[models."{MODEL}"]', f'input = "{Decimal(price_in) / 1000}"', f'output = "{Decimal(price_out) / 1000}"',
        'batch = "0.5"', 'flex = "0.5"', "",
    ))  # fmt: skip
    draft = path.with_suffix(".part")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return PriceList(number=number, digest=digest, input=price_in, output=price_out)
