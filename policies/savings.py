"""Whether compressing pays for itself: expected savings at the model's price, against its own cost.

After TCRA-LLM, section 5.3, which counts the machine that compresses in a question's price.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from posology.errors import InvalidRecord
from posology.types import Saving

#: version of this module; it grows when the same features are decided otherwise
_RULE = "1"
#: features of :func:`observe`: all of them, or none
_FIELDS = ("dollars_whole", "left", "cost")
#: significant digits of dollars in a reason
_DIGITS = 2
#: bytes of a version
_VERSION = 8

#: digest of the rule, for policies that apply it
VERSION = hashlib.blake2b(_RULE.encode(), digest_size=_VERSION).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether compressing pays for itself."""

    pays: bool
    #: a sentence
    reason: str


def observe(saving: Saving | None) -> dict[str, Any]:
    """Return the features of a saving, for the record; empty if it is ``None``."""
    if saving is None:
        return {}
    return {
        "saving.compressor": saving.compressor,
        "saving.tokens": saving.tokens,
        "saving.dollars_whole": float(saving.whole),
        "saving.left": saving.left,
        "saving.cost": float(saving.cost),
        "saving.seconds": saving.seconds,
    }


def recorded(features: Mapping[str, Any]) -> Saving | None:
    """Read a saving from the features of :func:`observe`; ``None``: they have none.

    Raises:
        InvalidRecord: a feature is missing, or not a number.
    """
    name = features.get("saving.compressor")
    if name is None:
        return None
    found = {field: _number(features, f"saving.{field}") for field in _FIELDS}
    seconds = features.get("saving.seconds")
    return Saving(
        compressor=str(name),
        tokens=round(_number(features, "saving.tokens")),
        whole=Decimal(repr(found["dollars_whole"])),
        left=found["left"],
        cost=Decimal(repr(found["cost"])),
        seconds=None if seconds is None else _number(features, "saving.seconds"),
    )


def weigh(saving: Saving) -> Verdict:
    """Return that compressing pays if it saves at least what it costs."""
    saved = saving.whole * (1 - Decimal(repr(saving.left)))
    pays = saved >= saving.cost
    end = "it pays" if pays else "skipped, and the passages are shown whole"
    return Verdict(
        pays=pays,
        reason=f"{saving.compressor} would save about {dollars(saved)} and costs {dollars(saving.cost)}: {end}.",
    )


def _number(features: Mapping[str, Any], name: str) -> float:
    value = features.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRecord(f"feature {name!r} must be a number (got {value!r})", field=name)
    return float(value)


def dollars(amount: Decimal) -> str:
    """Format dollars with two significant digits at least, also of tiny amounts."""
    if not amount:
        return "$0"
    places = max(_DIGITS, _DIGITS - 1 - amount.adjusted())
    return f"${amount:.{places}f}"
