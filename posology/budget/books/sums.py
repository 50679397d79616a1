"""Sums of entries: the values that the counters must have.

The same sums are written in Lua, where entries are made (``_money.lua``) and where they are taken out
(``archive.lua``); tests hold the three together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from posology.budget.books.reader import START, Entry
from posology.budget.ledger.windows import WINDOWS, window


class Fold:
    """The sums of a tenant's entries, up to an entry id.

    Args:
        base: sums of the archived entries: the hash ``…money:base``.
    """

    def __init__(self, base: Mapping[str, str] | None = None) -> None:
        base = base or {}
        self.place = base.get("upto", START)
        #: number of added entries, without the archive
        self.entries = 0
        self._base = Counter[str]()
        self._over = 0
        #: day → nano-dollars reserved and spent, without the archive
        self._amounts: dict[str, list[int]] = {}
        #: day → ``WHAT|STAGE|STRATEGY|TIER|MODEL`` → sum, without the archive
        self.days: dict[str, Counter[str]] = {}
        #: job → nano-dollars spent and reserved, without the archive
        self.jobs: dict[str, Counter[str]] = {}
        #: open attempt → nano-dollars
        self.open: dict[str, int] = {}
        for name, value in base.items():
            if name.startswith("open:"):
                self.open[name.removeprefix("open:")] = int(value)
            elif name.startswith(("spent:", "reserved:")) or name == "over":
                self._base[name] = int(value)

    @property
    def money(self) -> Counter[str]:
        """Return ``spent:W`` and ``reserved:W`` in nano-dollars, and ``over``."""
        found = self._base.copy()
        for day, (reserved, spent) in self._amounts.items():
            for name in (window(scope, day) for scope in WINDOWS):
                found[f"reserved:{name}"] += reserved
                found[f"spent:{name}"] += spent
        if self._over:
            found["over"] += self._over
        return found

    def add(self, entry: Entry) -> None:
        """Add the next entry."""
        reserved, spent = entry.reserved, entry.spent
        amounts = self._amounts.setdefault(entry.day, [0, 0])
        amounts[0] += reserved
        amounts[1] += spent
        own = self.jobs.get(entry.job)
        if own is None:
            own = self.jobs[entry.job] = Counter()
        own["reserved_nano"] += reserved
        own["spent_nano"] += spent
        if entry.kind == "reserve":
            self.open[entry.attempt] = reserved
        elif entry.kind != "correct":
            self.open.pop(entry.attempt, None)
        if entry.kind != "reserve":
            self._over += entry.over
            day = self.days.setdefault(entry.day, Counter())
            for name, n in figures(entry):
                day[name] += n
        self.entries += 1
        self.place = entry.place


def figures(entry: Entry) -> Iterator[tuple[str, int]]:
    """Yield an entry's changes to the figures of its day."""
    charged = entry.charged
    if charged is None:
        return
    fields = entry.fields
    # entries of earlier versions have no tier
    tier = f"{fields['tier']}|" if "tier" in fields else ""
    labels = f"|{fields['stage']}|{fields['strategy']}|{tier}{fields['label']}"
    unknown = 0 if entry.known else 1
    found = {"input": int(fields["input"]), "output": int(fields["output"]), "nano": entry.spent}
    if entry.kind == "correct":
        # it was counted as orphaned, at its bound
        was = charged - entry.spent
        found |= {"bound": unknown * charged - was, "unknown": unknown - 1}
        found["attempts"] = -1 if fields["outcome"] == "released" else 0
    elif entry.kind != "release":
        found |= {"attempts": 1, "bound": unknown * charged, "unknown": unknown}
    # entries of earlier versions do not say which attempts were refused before any work
    found["idle"] = int(fields.get("idle", "0"))
    for what, n in found.items():
        if n:
            yield f"{what}{labels}", n
