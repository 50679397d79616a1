"""Published forms of an evaluation: its rows, its measures and its estimate."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from orchestrator.evaluation.suites.base import Gold
from orchestrator.training.paid.rows import Row
from posology.published.answers import Status
from posology.published.base import Dollars, Published
from posology.published.decisions import DecisionOutput
from posology.published.money import RunCost
from posology.types import Form


class Outcome(StrEnum):
    """Grade of one answer."""

    RIGHT = "right"
    WRONG = "wrong"
    #: the literature answers the question, and the model refused
    REFUSED = "refused"
    #: an answer without the verdict that the question asks for
    UNDECIDED = "undecided"
    #: there is no answer: a call failed in a way that concerns this question alone
    FAILED = "failed"


class CitedOutput(Published):
    """A verified quote of an answer."""

    passage: tuple[str, ...]
    """Ids of the passage: its own, its article's and PubMed's, as far as they differ."""
    start: int
    """First code point of the quote in the passage's text."""
    end: int
    """Code point after its last one."""
    quote: str
    """The quote, word for word."""


class CitationsOutput(Published):
    """Cited and retrieved passages beside the gold passages."""

    cited: int
    """Number of cited passages."""
    right: int
    """Number of them that are gold passages."""
    gold: int
    """Number of gold passages."""
    found: int
    """Number of them that are cited."""
    retrieved: int
    """Number of them that were retrieved."""


class SupportCounts(Published):
    """Number of the answer's sentences by the verdict of their quotes."""

    supported: int = 0
    """Supported by their quotes."""
    unclear: int = 0
    """Neither clearly supported nor clearly not."""
    unsupported: int = 0
    """Not supported."""
    contradicted: int = 0
    """Contradicted."""
    removed: int = 0
    """Left out of the answer for lack of support."""


class EvalRow(Published, Row):
    """One question, asked in one way: a line of an evaluation's `rows.jsonl`."""

    row: Literal["question"] = "question"
    """Kind of row; always `question`."""
    key: str
    """Digest of the question and of how it was asked. A later row of the same key replaces an earlier one."""
    suite: str
    """Name of the suite."""
    id: str
    """Id of the question in its suite."""
    question: str
    """The question."""
    form: Form
    """Form of the answer."""
    policy: str
    """Policy with its settings, or forced strategy, as given."""
    model: str
    """Model, as `provider:name`."""
    outcome: Outcome
    """Grade: right, wrong, refused (though answerable), undecided (no verdict, though asked for one) or failed."""
    gold: Gold
    """Known answer."""
    status: Status | None
    """Answered, unsupported (no quote stands) or refused; null: failed."""
    answer: str | None
    """Text of the answer; null: refused or failed."""
    verdict: str | None
    """Verdict or option of the answer; null: it gave none."""
    refusal: str | None
    """Reason of the refusal; null: there is none."""
    cited: tuple[CitedOutput, ...]
    """Verified quotes."""
    retrieved: tuple[tuple[str, ...], ...]
    """Ids of the retrieved passages, best first: of each its own, its article's and PubMed's, as far as they differ."""
    citations: CitationsOutput | None
    """Citations beside the gold passages; null: these are unknown, or the question failed."""
    support: SupportCounts | None
    """Support of the answer's sentences; null: refused, failed or not checked."""
    decision: DecisionOutput | None
    """The chosen dose, and why; null: failed."""
    calls: int
    """Number of model calls."""
    input_tokens: int | None
    """Input tokens of all attempts; null: an attempt's usage is unknown."""
    output_tokens: int | None
    """Output tokens of all attempts, hidden ones included; null: an attempt's usage is unknown."""
    cost_usd: Dollars | None
    """Cost in dollars; null: the cost of an attempt is unknown."""
    charged_usd: Dollars
    """Dollars that count against limits: unknown costs at their bounds."""
    seconds: float | None
    """Duration in seconds, waiting for other questions included; null: replies of an interrupted run were used again."""
    index: str | None
    """Name and version of the index; null: failed."""
    error: str | None
    """Class and message of the error; null: there is none."""


class Measured(Published):
    """A mean with its 95 % bootstrap interval over questions."""

    mean: float
    """The mean, or the ratio of two sums."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    questions: int
    """Number of questions that it is measured on."""


class CostMeasured(Published):
    """Dollars for each right answer, with a 95 % bootstrap interval over questions."""

    mean: float
    """All costs by the number of right answers."""
    low: float
    """Lower end of the interval."""
    high: float | None
    """Upper end of the interval; null: so few answers are right that it has none."""
    questions: int
    """Number of questions that it is measured on."""


class CellOutput(Published):
    """Measures of one suite, policy and model. Shares are of all questions, failed ones included."""

    suite: str
    """Name of the suite."""
    policy: str
    """Policy or strategy."""
    model: str
    """Model."""
    questions: int
    """Number of questions with a row."""
    missing: int
    """Number of questions that were not asked yet."""
    outcomes: Mapping[Outcome, int]
    """Number of questions by grade."""
    accuracy: Measured | None
    """Share of right answers; null: there is no question."""
    refused: Measured | None
    """Share of refusals of answerable questions."""
    wrong: Measured | None
    """Share of wrong answers."""
    undecided: Measured | None
    """Share of answers without the verdict that the question asks for."""
    citation_precision: Measured | None
    """Cited gold passages per cited passage; null: gold passages are unknown, or nothing was cited."""
    citation_recall: Measured | None
    """Cited gold passages per gold passage, of answered questions; null: gold passages are unknown."""
    retrieval_recall: Measured | None
    """Retrieved gold passages per gold passage; null: gold passages are unknown."""
    support: SupportCounts | None
    """Support of the sentences of all answers; null: none was checked."""
    supported: Measured | None
    """Share of checked sentences that their quotes support; null: none was checked."""
    strategies: Mapping[str, int]
    """Number of questions by the strategy that the policy chose."""
    calls: Measured | None
    """Model calls a question."""
    tokens: Measured | None
    """Input and output tokens a question; null: unknown."""
    cost_usd: Measured | None
    """Dollars a question; null: unknown."""
    cost_per_right_usd: CostMeasured | None
    """Dollars for one right answer; null: unknown, or none is right."""
    seconds_p50: float | None
    """Median duration of a question in seconds; null: unknown."""
    seconds_p95: float | None
    """Duration that 95 % of the questions do not exceed, in seconds; null: unknown."""
    unknown_costs: int
    """Number of questions whose cost is unknown; they are left out of costs."""


class DifferenceMeasured(Published):
    """Paired difference of two ways to ask the same questions: the first minus the second."""

    suite: str
    """Name of the suite."""
    policy: str
    """Policy or strategy of the first."""
    model: str
    """Model of the first."""
    against_policy: str
    """Policy or strategy of the second."""
    against_model: str
    """Model of the second."""
    against: str | None
    """Folder of the second; null: the same run."""
    questions: int
    """Number of questions that both were asked."""
    gained: int
    """Right in the first alone."""
    lost: int
    """Right in the second alone."""
    accuracy: Measured
    """Difference of the shares of right answers."""
    refused: Measured
    """Difference of the shares of refusals."""
    wrong: Measured
    """Difference of the shares of wrong answers."""
    tokens: Measured | None
    """Difference of the tokens a question; null: unknown."""
    cost_usd: Measured | None
    """Difference of the dollars a question; null: unknown."""


class _Asked(Published):
    """Size of an evaluation."""

    questions: int
    """Questions to ask, each once for every policy and model."""
    answered: int
    """Questions that have a row already."""
    calls: int
    """Most model calls, without repairs."""


class EvalEstimate(RunCost, _Asked):
    """Cost estimate of an evaluation; questions that have a row are not included."""

    free: bool
    """Whether no question that is left costs anything."""
    worst_usd: Dollars
    """Maximum: every reply has its greatest length, and is repaired."""
    cap_usd: Dollars | None
    """Maximum cost of the run, earlier parts included; null: none is given."""


class EvalOutput(Published):
    """Output of `posology eval --json`."""

    folder: str
    """Folder with rows, calls and reports."""
    index: str
    """Name and version of the index."""
    estimate: EvalEstimate
    """Estimated cost of what was left to ask."""
    spent_usd: Dollars
    """Dollars charged by the run, earlier parts included."""
    skipped: Mapping[str, int]
    """Records of the suites' files that are no questions of their format, by suite and reason."""
    cells: tuple[CellOutput, ...]
    """Measures; empty: only the cost was estimated."""
    differences: tuple[DifferenceMeasured, ...]
    """Paired differences: from the first policy and model of this run, and from the run compared with."""
