"""Spending, balances and ledgers as JSON."""

from __future__ import annotations

from datetime import date, datetime

from posology.published.base import Dollars, Published
from posology.types import Grouping
from posology.types.money import Scope


class Amounts(Published):
    """Totals of some attempts."""

    attempts: int
    """Number of attempts."""
    charged_usd: Dollars
    """Dollars that count against limits: costs, and bounds of unknown costs."""
    at_bounds_usd: Dollars
    """Dollars of these that were charged at bounds."""
    unknown_costs: int
    """Number of attempts with unknown cost."""
    input_tokens: int
    """Input tokens."""
    output_tokens: int
    """Output tokens."""


class SpendGroup(Amounts):
    """Totals of one day, stage, strategy, model or tenant."""

    name: str
    """Name of the group."""


class BalanceOutput(Published):
    """Balance of one scope of a tenant; spent and reserved dollars never exceed the cap."""

    tenant: str
    """Name of the tenant."""
    scope: Scope
    """The scope."""
    cap_usd: Dollars | None
    """Limit in dollars; null: none."""
    spent_usd: Dollars
    """Dollars spent, with unknown costs at their bounds."""
    reserved_usd: Dollars
    """Dollars reserved for calls in flight."""
    left_usd: Dollars | None
    """Remaining budget in dollars; null: no limit."""
    resets: datetime | None
    """End of the window; null: it never ends."""


class SpendOutput(Published):
    """Spending in a range of days."""

    tenant: str | None
    """Name of the tenant; null: all tenants."""
    by: Grouping
    """What the groups are grouped by."""
    since: date
    """First day, UTC."""
    until: date
    """Last day, UTC, inclusive; a call belongs to the day of its reservation."""
    groups: tuple[SpendGroup, ...]
    """Groups: days in order, all others with the largest amount first."""
    total: Amounts
    """Totals of all groups."""
    balances: tuple[BalanceOutput, ...]
    """Balances now, regardless of the days asked for."""


class RunCost(Published):
    """Estimated cost of a paid run.

    Forms add a size in a base of its own, which they name after this one: pydantic begins with the fields of the last base.
    """

    free: bool
    """Whether the model is declared free."""
    input_tokens: int
    """Expected input tokens."""
    output_tokens: int
    """Expected output tokens."""
    low_usd: Dollars
    """Minimum: every reply has a few words."""
    expected_usd: Dollars
    """Expected cost."""
    worst_usd: Dollars
    """Maximum: every reply needs a repair."""
    spent_usd: Dollars
    """Spent by the run so far."""
    cap_usd: Dollars | None
    """Maximum cost of the run, earlier parts included; null: the tenant's limits alone."""
    balances: tuple[BalanceOutput, ...]
    """Budgets of the tenant."""
