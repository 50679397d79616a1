"""Compressors that learn: what they learn from is made here, and they are trained."""

from __future__ import annotations

import typer

from orchestrator.commands.compressor_dataset import dataset
from orchestrator.commands.compressor_finetune import finetune
from orchestrator.commands.compressor_label import label
from orchestrator.commands.compressor_train import train

app = typer.Typer(help="Makes compressors that learn.", no_args_is_help=True)
app.command()(label)
app.command()(train)
app.command()(dataset)
app.command()(finetune)
