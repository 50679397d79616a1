"""Files of Q-tables and of preflight's calibrations, written atomically."""

from __future__ import annotations

from pathlib import Path

from orchestrator.settings import Settings
from policies import artefacts, calibration
from policies.calibration import Calibration
from policies.qtable import QTable, strangers
from posology.durable import replace_file
from posology.errors import BadArtefact, BadFile
from prompts.template import digests, form
from strategies.compression import known


def load(path: Path) -> QTable:
    """Read a Q-table.

    Raises:
        BadArtefact: the file cannot be read, or has no complete Q-table.
    """
    text = _text(path, "Q-table", "train one with `posology policy train`")
    return artefacts.read(text, path=str(path))


def load_calibration(path: Path) -> Calibration:
    """Read a calibration of preflight.

    Raises:
        BadArtefact: the file cannot be read, or has no complete calibration.
    """
    text = _text(path, "calibration", "make one with `posology policy calibrate`")
    return calibration.read(text, path=str(path))


def configured(settings: Settings) -> QTable | None:
    """Read the configured Q-table; ``None``: none is configured.

    Raises:
        BadArtefact: the file cannot be read, or has no complete Q-table.
    """
    return load(Path(settings.qtable)) if settings.qtable else None


def configured_calibration(settings: Settings) -> Calibration | None:
    """Read the configured calibration; ``None``: none is configured.

    Raises:
        BadArtefact: the file cannot be read, or has no complete calibration.
    """
    return load_calibration(Path(settings.calibration)) if settings.calibration else None


def differing(table: QTable, settings: Settings) -> tuple[str, ...]:
    """Return the differences of a Q-table from the settings, in words."""
    return strangers(
        table,
        model=settings.model,
        # its own compressor, if it is still registered
        compressor=table.compressor if known(table.compressor) else settings.compressor,
        prompts=digests((form("answer", settings.quotes),)),
    )


def save(table: QTable, path: Path) -> None:
    """Replace the file of a Q-table atomically.

    Raises:
        BadFile: it cannot be written; the old file is unchanged.
    """
    _replace(artefacts.write(table), path)


def save_calibration(made: Calibration, path: Path) -> None:
    """Replace the file of a calibration atomically.

    Raises:
        BadFile: it cannot be written; the old file is unchanged.
    """
    _replace(calibration.write(made), path)


def _text(path: Path, what: str, how: str) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        raise BadArtefact(
            f"cannot read the {what} ({why}): pass another file, or {how}", path=str(path)
        ) from None
    except UnicodeDecodeError:
        raise BadArtefact(f"not a {what}: the file is not UTF-8 text", path=str(path)) from None


def _replace(text: str, path: Path) -> None:
    try:
        # workers of another user read it, too
        replace_file(path, text.encode())
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
