"""The ``policy`` commands: train, calibrate, show, score, promote, replay and compare."""

from __future__ import annotations

import typer

from orchestrator.cli.policy.calibrate import calibrate
from orchestrator.cli.policy.compare import compare
from orchestrator.cli.policy.feedback import feedback, promote
from orchestrator.cli.policy.replay import replay
from orchestrator.cli.policy.show import show
from orchestrator.cli.policy.train import train

app = typer.Typer(help="Train, inspect and compare policies.")
app.command()(train)
app.command()(calibrate)
app.command()(show)
app.command()(feedback)
app.command()(promote)
app.command()(replay)
app.command()(compare)
