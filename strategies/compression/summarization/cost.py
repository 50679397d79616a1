"""Cost of time on your own machine (TCRA-LLM, section 5.3)."""

from __future__ import annotations

from decimal import Decimal

_HOUR = Decimal(3600)


def machine_dollars(seconds: float, dollars_per_hour: Decimal, utilisation: float = 1.0) -> Decimal:
    """Return the cost of machine time, idle hours included.

    Args:
        seconds: of the work, >= 0.
        dollars_per_hour: of the machine, >= 0.
        utilisation: fraction of time the machine is busy (0 < x ≤ 1).

    Raises:
        ValueError: a value is out of range.
    """
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"seconds must be >= 0 (got {seconds})")
    if not (dollars_per_hour.is_finite() and dollars_per_hour >= 0):
        raise ValueError(f"dollars_per_hour must be >= 0 (got {dollars_per_hour})")
    if not 0 < utilisation <= 1:
        raise ValueError(f"utilisation must be > 0 and <= 1 (got {utilisation})")
    return Decimal(str(seconds)) * dollars_per_hour / _HOUR / Decimal(str(utilisation))
