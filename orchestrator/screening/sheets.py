"""Sheets that readers fill in: CSV files of a folder, each rewritten with what was decided in it kept."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from orchestrator.rendering.evidence import csv_cells
from posology.durable import replace_file
from posology.errors import BadFile
from posology.types.tables import Screening

#: columns that a sheet cannot do without
ID, DECISION = "id", "decision"
#: decisions on a report that was not had
NOT_RETRIEVED = "not retrieved"
_DELIMITERS = (",", ";", "\t")
#: words for decisions, as other programs write them
_WORDS: Mapping[str, Screening] = MappingProxyType(
    {
        **dict.fromkeys(("include", "included", "yes", "1"), Screening.INCLUDE),
        **dict.fromkeys(("exclude", "excluded", "no", "0"), Screening.EXCLUDE),
        **dict.fromkeys(("unsure", "maybe"), Screening.UNSURE),
    }
)


@dataclass(kw_only=True, slots=True)
class Sheet:
    """A CSV file with a row for each record."""

    path: Path
    #: by id, in the order of the file; cells by column
    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    delimiter: str = ","

    def decisions(self) -> dict[str, Screening]:
        """Return what was decided, by id; open rows are left out.

        Raises:
            BadFile: a decision is none of include, exclude and unsure.
        """
        decisions: dict[str, Screening] = {}
        for line, (name, row) in enumerate(self.rows.items(), 2):
            said = row[DECISION].strip().casefold()
            if said and said not in _WORDS:
                raise BadFile(
                    f"the decision on {name} must be include, exclude or unsure (got {row[DECISION]!r})",
                    path=str(self.path),
                    line=line,
                )
            if said:
                decisions[name] = _WORDS[said]
        return decisions

    def numbers(self, column: str) -> dict[str, int]:
        """Return the numbers of a column, by id; cells without one are left out."""
        given = {name: row.get(column, "").strip() for name, row in self.rows.items()}
        return {
            name: int(text) for name, text in given.items() if text.isascii() and text.isdigit()
        }

    def write(self, columns: tuple[str, ...], rows: Iterable[Mapping[str, str]]) -> None:
        """Replace the file at once; decisions and columns of the reader's own stay with their records.

        Args:
            columns: columns that the program fills in, and those of decisions.
            rows: cells by column; a cell that is left out keeps its value.

        Raises:
            BadFile: it cannot be written.
        """
        names = (*columns, *(one for one in self.columns if one not in columns))
        written = io.StringIO()
        writer = csv.writer(written, delimiter=self.delimiter, lineterminator="\r\n")
        writer.writerow(names)
        for row in rows:
            cells = {**self.rows.get(row[ID], {}), **row}
            writer.writerow(csv_cells(cells.get(name, "") for name in names))
        write_file(self.path, written.getvalue())


def read_sheet(path: Path, same: Mapping[str, str]) -> Sheet:
    """Read a sheet; one that does not exist yet is empty.

    Args:
        path: a CSV with the columns ``id`` and ``decision``, delimited by commas, semicolons or tabs.
        same: id of the record that stands for each known id.

    Raises:
        BadFile: it cannot be read, a column is missing, or a row names no record, or one that another row has.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return Sheet(path=path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise BadFile(reason or str(error), path=str(path)) from None
    head = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=head.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restval="")
    columns = tuple(reader.fieldnames or ())
    if missing := [one for one in (ID, DECISION) if one not in columns]:
        raise BadFile(f"it needs a column named {' and '.join(missing)}", path=str(path), line=1)
    rows: dict[str, dict[str, str]] = {}
    for row in reader:
        if None not in row and not any(cell.strip() for cell in row.values()):
            # spreadsheet programs leave blank rows
            continue
        # a spreadsheet program was kept from reading the id as a formula
        given = row[ID].strip().removeprefix("'")
        if None in row:
            raise BadFile(
                "the row has more cells than the header", path=str(path), line=reader.line_num
            )
        if given not in same:
            raise BadFile(f"no record has the id {given!r}", path=str(path), line=reader.line_num)
        if same[given] in rows:
            raise BadFile(f"two rows are of {same[given]}", path=str(path), line=reader.line_num)
        rows[same[given]] = row
    return Sheet(path=path, rows=rows, columns=columns, delimiter=delimiter)


def write_file(path: Path, text: str) -> None:
    """Write a file of UTF-8, in place of the old one at once.

    Raises:
        BadFile: it cannot be written.
    """
    try:
        # spreadsheet programs need the mark to read UTF-8
        replace_file(path, text.encode("utf-8-sig" if path.suffix == ".csv" else "utf-8"))
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
