"""Published form of a screening."""

from __future__ import annotations

from posology.published.base import Published


class ScreeningSource(Published):
    """A file of search results."""

    file: str
    """Name of the file."""
    records: int
    """Number of its records, duplicates included."""


class ScreeningRecall(Published):
    """Statement on the recall of the records that were read."""

    relevant: int | None
    """Records read that are relevant; null: see `withheld`."""
    at_least: float | None
    """Lower bound of recall, 0 to 1; null: nothing relevant was found, or see `withheld`."""
    confidence: float
    """Probability that the bound holds, if the order is no worse than chance."""
    target: float
    """Recall at which reading may stop."""
    reached: bool
    """Whether the bound is at least the target."""
    next_look: int | None
    """Number of read records at which the bound changes next; null: the last look was made, or see `withheld`."""
    withheld: str | None
    """Why nothing is stated; null: something is."""


class ScreeningReaders(Published):
    """Agreement of two readers on title and abstract."""

    both: int
    """Records that both decided."""
    one: int
    """Records that one of them decided."""
    disagreements: int
    """Records that one includes, or is unsure of, and the other excludes."""
    open: int
    """Disagreements that are not settled. They count as included."""
    kappa: float | None
    """Cohen's kappa of the records that both decided; null: undefined, or none."""


class ExclusionReason(Published):
    """A reason for which reports were excluded."""

    reason: str
    """The reason, as the sheet has it."""
    reports: int
    """Number of reports."""


class ScreeningReports(Published):
    """The full-text stage."""

    sought: int
    """Reports whose full text is sought: records that the first stage does not exclude."""
    waiting: int
    """Reports without a decision."""
    not_retrieved: int
    """Reports that were not retrieved."""
    assessed: int
    """Reports that were assessed."""
    excluded: tuple[ExclusionReason, ...]
    """Reports that were excluded, by reason."""
    included: int
    """Reports that were included."""


class ScreeningOutput(Published):
    """State of a screening."""

    question: str
    """Question by which the records are ordered."""
    folder: str
    """Folder of the sheets and the diagram."""
    sources: tuple[ScreeningSource, ...]
    """Files of search results."""
    duplicates: int
    """Records removed before screening because another one has their id, PMID or DOI."""
    unreadable: int
    """Records removed before screening because they cannot be read, e.g. without an abstract; a file of which nothing can be
    read is one."""
    records: int
    """Records in the sheets."""
    screened: int
    """Records that a reader decided."""
    excluded: int
    """Records excluded on title and abstract."""
    unscreened: int
    """Records that no reader decided."""
    recall: ScreeningRecall
    """Statement of recall."""
    readers: ScreeningReaders | None
    """Agreement of the readers; null: there is one."""
    reports: ScreeningReports
    """The full-text stage."""
