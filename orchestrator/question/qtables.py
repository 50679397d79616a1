"""Files of Q-tables, written atomically."""

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
        BadArtefact: the file cannot be read, or has no complete Q-table.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        raise BadArtefact(
            f"cannot read the Q-table ({why}): pass another file, or train one with `posology policy train`",
            path=str(path),
        ) from None
    except UnicodeDecodeError:
        raise BadArtefact("not a Q-table: the file is not UTF-8 text", path=str(path)) from None
    return artefacts.read(text, path=str(path))


def configured(settings: Settings) -> QTable | None:
    """Read the configured Q-table; ``None``: none is configured.

    Raises:
        BadArtefact: the file cannot be read, or has no complete Q-table.
    """
    return load(Path(settings.qtable)) if settings.qtable else None


def save(table: QTable, path: Path) -> None:
    """Replace the file of a Q-table atomically.

    Raises:
        BadFile: it cannot be written; the old file is unchanged.
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
                # workers of another user read it, too
                draft.chmod(0o644)
                draft.replace(path)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
