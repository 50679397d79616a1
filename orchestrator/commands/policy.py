"""Policies: what they learned is shown, and changed by what users say of answers."""

from __future__ import annotations

import typer

from orchestrator.commands.policy_compare import compare
from orchestrator.commands.policy_feedback import feedback
from orchestrator.commands.policy_promote import promote
from orchestrator.commands.policy_replay import replay
from orchestrator.commands.policy_show import show
from orchestrator.commands.policy_train import train

app = typer.Typer(help="Looks after what policies learned.", no_args_is_help=True)
app.command()(train)
app.command()(show)
app.command()(feedback)
app.command()(promote)
app.command()(replay)
app.command()(compare)
