"""Makes ``docs/figures/answer.svg``: what ``posology ask`` prints for a question over the sample corpus.

``python docs/hooks/answer_picture.py`` ingests the sample notes into a temporary index, asks, and exports by rich.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "figures" / "answer.svg"
NOTES = ROOT / "posology" / "corpus" / "sample" / "notes.jsonl"
QUESTION = (
    "Do beta-blockers harm or help people whose heart failure comes with a low ejection fraction?"
)
WIDTH = 96
#: rich's own format names a font on the web; the reader's own will do
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g>
</svg>
"""


def main() -> None:
    """Ask, and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        _posology("ingest", str(NOTES), "--index", str(index))
        answer = _posology("ask", QUESTION, "--index", str(index), "--k", "2")
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(f'$ posology ask "{QUESTION}" --index ./index --k 2', style="bold"))
    console.print(Text.from_ansi(answer))
    svg = console.export_svg(
        title="posology ask", theme=MONOKAI, code_format=FORMAT, unique_id="answer"
    )
    PICTURE.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", "utf-8")


def _posology(*words: str) -> str:
    """Run a command as in a terminal with colours."""
    environment = {
        **os.environ,
        "FORCE_COLOR": "1",
        "COLUMNS": str(WIDTH),
        "TERM": "xterm-256color",
    }
    code = "from orchestrator.cli.app import main; main()"
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", code, *words],
        env=environment,
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ).stdout


if __name__ == "__main__":
    main()
