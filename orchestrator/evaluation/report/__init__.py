"""Reports of an evaluation: Markdown with figures beside it, and one HTML page."""

from __future__ import annotations

from pathlib import Path

from orchestrator.evaluation.folder import HTML, MARKDOWN, SUMMARY
from orchestrator.evaluation.forms import EvalOutput
from orchestrator.evaluation.report.figures import figures
from orchestrator.evaluation.report.html import page
from orchestrator.evaluation.report.markdown import document
from posology.errors import BadFile


def write_reports(out: EvalOutput, folder: Path) -> None:
    """Write the measures as JSON, Markdown, figures and HTML; earlier ones are replaced.

    Raises:
        BadFile: a file cannot be written.
    """
    drawn = figures(out)
    written = {
        SUMMARY: out.model_dump_json(indent=2) + "\n",
        MARKDOWN: document(out, drawn),
        HTML: page(out, drawn),
        **{figure.file: figure.svg + "\n" for figure in drawn},
    }
    for name, text in written.items():
        path = folder / name
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise BadFile(error.strerror or str(error), path=str(path)) from None
