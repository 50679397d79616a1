"""Our side, from where it is kept: the ledger and its archive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from posology.budget.books import archive
from posology.budget.books.reading import START, Reader, order
from posology.budget.reconcile.ours import Latest, Ours

#: seconds by which the clocks of a worker and of Redis may differ: an entry is made after its attempt
#: was started, by another clock
SKEW = 3_600.0


async def attempts(
    reader: Reader, files: Sequence[Path] = (), *, since: float | None, notes: list[str]
) -> AsyncIterator[Ours]:
    """The last word on each attempt of a tenant, from the archive's files and the ledger.

    Args:
        reader: of the ledger.
        files: of the archive; those of other tenants are passed over.
        since: POSIX seconds; attempts that were started before may be left out.
        notes: gets a line where entries of the time are in the archive and no file was given.

    Raises:
        BadFile: a file cannot be read, or is none of an archive.
        StoreUnavailable: Redis is out of reach.
    """
    tenant, latest = reader.tenant, Latest(reader.tenant)
    after = START if since is None else f"{max(0, int((since - SKEW) * 1000))}-0"
    moved = (await reader.page(after)).archived
    own = sorted(path for path in files if path.name.startswith(f"{tenant}."))
    if moved != START and order(moved) > order(after) and not own:
        day = datetime.fromtimestamp(order(moved)[0] / 1000, UTC)
        notes.append(
            f"entries of {tenant} up to {day:%Y-%m-%d %H:%M} are in the archive: give its files "
            "with --archive"
        )
    for path in own:
        for entry in archive.read(path):
            # what an interrupted run has not taken out yet is in the ledger, too
            if order(entry.place) <= order(moved) and (word := latest(entry.fields)):
                yield word
    async for entry in reader.entries(after):
        if (word := latest(entry.fields)) is not None:
            yield word
    for word in latest.rest():
        yield word
