"""Q-tables in files: whole, or not there."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from orchestrator.settings import Settings
from policies import artefacts
from policies.qtable import QTable
from posology.errors import BadArtefact, BadFile


def load(path: Path) -> QTable:
    """Read a Q-table.

    Raises:
        BadArtefact: the file cannot be read, or holds none that is whole.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        raise BadArtefact(
            f"the Q-table cannot be read ({why}): name another file, or make one with `posology policy train`",
            path=str(path),
        ) from None
    except UnicodeDecodeError:
        raise BadArtefact("it is no Q-table: it is no text", path=str(path)) from None
    return artefacts.read(text, path=str(path))


def configured(settings: Settings) -> QTable | None:
    """The Q-table by which is decided; ``None``: there is none, and policies do without.

    Raises:
        BadArtefact: the file cannot be read, or holds none that is whole.
    """
    return load(Path(settings.qtable)) if settings.qtable else None


def save(table: QTable, path: Path) -> None:
    """Write a Q-table in place of what was there, at once: a reader sees one or the other.

    Raises:
        BadFile: it cannot be written; what was there is there still.
    """
    try:
        with NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            draft = Path(file.name)
            try:
                file.write(artefacts.write(table))
                file.flush()
                os.fsync(file.fileno())
                # what is read by workers of another user is not written for its owner alone
                draft.chmod(0o644)
                draft.replace(path)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
