"""The ``compressor`` commands: make training data and train compressors."""

from __future__ import annotations

import typer

from orchestrator.cli.compressor.dataset import dataset
from orchestrator.cli.compressor.finetune import finetune
from orchestrator.cli.compressor.label import label
from orchestrator.cli.compressor.train import train

app = typer.Typer(
    help="Train compressors: labels and pruners, data sets and summarization models.",
)
app.command()(label)
app.command()(train)
app.command()(dataset)
app.command()(finetune)
