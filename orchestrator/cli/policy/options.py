"""Options of several ``policy`` commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.settings import Settings

QTableOption = Annotated[
    Path | None,
    typer.Option("--qtable", metavar="FILE", help="File of the Q-table. Default: POSOLOGY_QTABLE."),
]
PromptsOption = Annotated[
    Path | None,
    typer.Option(
        "--prompts",
        metavar="DIR",
        help="Folder of the templates that answered, if they were not the packaged ones. Default: POSOLOGY_PROMPTS.",
    ),
]


def with_qtable(settings: Settings, file: Path | None) -> Settings:
    """Return the settings with another Q-table; ``None``: as configured."""
    return settings if file is None else settings.model_copy(update={"qtable": str(file)})
