"""Makes ``docs/figures/answer.svg`` and those of the tour, ``tour-*.svg``: what commands print, exported by rich.

``python docs/hooks/pictures.py`` runs them over the sample corpus in a temporary folder, with a stack of its own.
``python docs/hooks/pictures.py llamacpp:NAME`` also asks that local model; without it, its picture stays.
"""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures"
NOTES = "posology/corpus/sample/notes.jsonl"
ANSWER = (
    'ask "Do beta-blockers harm or help people whose heart failure comes with a low ejection fraction?" '
    "--index ./index --k 2"
)
QUESTION = "Does aspirin reduce the risk of preeclampsia?"
QUESTIONS = (QUESTION, "Does metformin cause lactic acidosis?", "Who won the football cup?")
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
    """Run the commands, and write the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        picture("tour-ingest", [f"ingest {NOTES} --index ./index"], folder)
        picture("answer", [ANSWER], folder)
        picture("tour-ask", [f'ask "{QUESTION}"'], folder)
        quote = "aspirin 75-150 mg daily lowers preeclampsia"
        picture("tour-quote", [f'quote "{quote}"'], folder)
        for model in sys.argv[1:]:
            picture("tour-model", [f'ask "{QUESTION}" --model {model}'], folder)
        lines = (f'{{"id": {n}, "question": "{text}"}}\n' for n, text in enumerate(QUESTIONS, 1))
        (folder / "questions.jsonl").write_text("".join(lines), "utf-8")
        with stack(folder):
            batch = "batch questions.jsonl --output answers.jsonl --max-cost 0.02"
            picture("tour-batch", [batch, "jobs list"], folder)
            picture("tour-ledger", ["spend", "ledger verify"], folder)


def picture(name: str, commands: Sequence[str], folder: Path) -> None:
    """Run commands as in a terminal with colours, and write what they print."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for command in commands:
        # the line of a batch's end is on standard error, where colours would bring its progress, too
        batch = command.startswith("batch")
        done = subprocess.run(  # noqa: S603 - our own command
            _line(command), env=_environment(colours=not batch), cwd=folder, check=False, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if batch else subprocess.DEVNULL, text=True,
        )  # fmt: skip
        console.print(Text(f"$ posology {command}", style="bold"))
        console.print(Text.from_ansi(done.stdout))
    title = f"posology {commands[0].split()[0]}"
    svg = console.export_svg(title=title, theme=MONOKAI, code_format=FORMAT, unique_id=name)
    text = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
    (FIGURES / f"{name}.svg").write_text(text, "utf-8")


@contextmanager
def stack(folder: Path) -> Iterator[None]:
    """Run a stack in a folder during the block."""
    log = folder / "up.log"
    with log.open("w") as file:
        line = _line("up --index ./index --workers 1 --port 0")
        process = subprocess.Popen(  # noqa: S603 - our own command
            line, env=_environment(), cwd=folder, stdout=file, stderr=file
        )
        try:
            while "API at" not in log.read_text():
                if process.poll() is not None:
                    raise RuntimeError(log.read_text())
                time.sleep(0.2)
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


def _line(command: str) -> list[str]:
    words = shlex.split(command.replace(NOTES, str(ROOT / NOTES)))
    return [sys.executable, "-c", "from orchestrator.cli.app import main; main()", *words]


def _environment(*, colours: bool = True) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "POSOLOGY_CONFIG": "off",
        **({"FORCE_COLOR": "1"} if colours else {}),
        "COLUMNS": str(WIDTH),
        "TERM": "xterm-256color",
    }


if __name__ == "__main__":
    main()
