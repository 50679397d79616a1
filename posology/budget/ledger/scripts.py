"""The Lua scripts of money: files under ``lua``, each with the same beginning."""

from __future__ import annotations

from functools import cache

from posology.store.lua import lua

_PACKAGE = "posology.budget.ledger"
#: models of a tenant that have figures of their own
MODELS = 200
#: stands for all others
OTHER = "other"
#: milliseconds after which somebody who waits and does not ask again has left
QUEUED = 5_000
#: milliseconds for which the late truth about a lost call is waited for
REMEMBERED = 86_400_000


@cache
def library() -> str:
    """What every script that touches money begins with, other packages' too."""
    constants = (
        f"local MODELS, OTHER, QUEUED, REMEMBERED = {MODELS}, '{OTHER}', {QUEUED}, {REMEMBERED}\n"
    )
    return constants + lua(_PACKAGE, "_money")


@cache
def source(name: str) -> str:
    """The whole text of a script."""
    return library() + lua(_PACKAGE, name)
