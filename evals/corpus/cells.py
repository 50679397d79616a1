"""Asks questions whose answer stands in a cell of a table only, over six articles of PMC, of the reader without a model.

Usage: ``posology ingest DIR --index INDEX``, then ``python -m evals.corpus.cells INDEX``. ``DIR`` has the articles as JATS, from
PMC's open-access subset: PMC2329613, PMC2994229, PMC3166277, PMC3460867, PMC3574550, PMC3585041. They are not part of this
repository.

Printed for each question: the places of the first row with the right value among the quotes, and of the first passage that has
it among those retrieved. The first 30 were looked at while the reader's order of rows was written, the others were asked once, after.
"""

from __future__ import annotations

import argparse

from posology import Posology

#: questions, and what the row that answers has
QUESTIONS = (
    ("What was the seroprevalence of Rift Valley fever in goats in Mopeia?", "Goats / Seroprevalence (%): 50.9"),
    ("What was the seroprevalence of Rift Valley fever in sheep in Nicoadala?", "Sheep / Seroprevalence (%): 80"),
    ("What is the odds ratio of seropositivity for sheep older than 12 months?", "(OR): 9.50"),
    ("How many goats were sampled in Chimuara?", "Chimuara: Goats / n: 140"),
    ("What was the residual activity of LipF after 10 minutes of incubation?", "LipF: xI: 1; Residual activity (%) / 10 min: 7"),
    ("What was the residual activity of LipU after 30 minutes?", "30 min: 17"),
    ("What was Cronbach's alpha of physical disability in the OHIP-NL?", "Cronbach's alpha: 0.88"),
    ("What is the intraclass correlation of psychological discomfort in the OHIP-NL?", "ICC: 0.87"),
    ("What were the limits of agreement of social disability in the OHIP-NL?", "-4.3 to 3.1"),
    ("What was the OHIP-NL score of patients with a partial denture?", "Partial denture; n: 39; OHIP-NL: 53.8"),
    ("What was the mean lysis time of strain IN64?", "IN64: n: 63; MLT (min): 48.4"),
    ("What was the mean lysis time of strain IN65?", "IN65: n: 33; MLT (min): 83.8"),
    ("What was the hazard ratio of colorectal cancer with age at menarche of 14?", "menarche / 14: Number of cases/non-cases: 424/71 912"),
    ("What was the hazard ratio of colorectal cancer with three full-term pregnancies?", "1.16 (0.98–1.36)"),
    ("What was the hazard ratio of colorectal cancer with oral contraceptive use for 10 years or more?", "1.09 (0.89–1.35)"),
    ("How many cases of colorectal cancer were there among women with menopause at the age of 51 to 52?", "cases/non-cases: 200/20 489"),
    ("What is the apparent Ki of MmPPOX for LipU?", "Apparent Ki (µM): 5.1"),
    ("What is the Km of Cut6?", "Km (mM): 3.26"),
    ("What percentage of colorectal cancer cases were pre-menopausal?", "(n=1878): 11.2"),
    ("What percentage of colorectal cancer cases were current smokers?", "(n=1878): 18.5"),
    ("What is the genotype of strain IN65?", "C51S/F94C)"),
    ("What was the mean lysis time when KCN was added at 45 minutes?", "MLT (min): 50.1"),
    ("What share of bladder cancers were in stage I?", "2219 45%"),
    ("How many cases of lung cancer in advanced stage could be avoided by removing differences between genders?", "423 (143, 703)"),
    ("What was the total OHIP-NL score of those with excellent oral health status?", "Excellent; n: 7; OHIP-NL: 25.3"),
    ("What was the mean handicap score of the OHIP-NL?", "Handicap (6): Mean total score: 3.2"),
    ("What was the seroprevalence in female goats?", "Female; Total sampled: 345; No. positive: 54; Seroprevalence (%): 15.7"),
    ("What was the mean age of non-cases at menopause?", "48.6 (5.1)"),
    ("What was the growth in mean lysis time with 20% LB?", "MLT (min): 59.5"),
    ("How many samples were positive for IgG in October?", "No. positive / IgG: 9"),
)  # fmt: skip
#: the same, of questions that were asked once
ASIDE = (
    ("What was the mean lysis time of strain IN68?", "IN68: n: 153; MLT (min): 54.1"),
    ("How many cells were measured with SYP028?", "SYP028 (5): nc: 70"),
    (
        "What was the mean total score of psychological discomfort?",
        "Psychological discomfort (5): Mean total score: 6.6",
    ),
    (
        "What was the average inter-item correlation of functional limitation?",
        "inter-item correlation: 0.34",
    ),
    (
        "What was the OHIP-NL score of people with a full denture?",
        "Full denture; n: 35; OHIP-NL: 47.2",
    ),
    (
        "What was the adjusted odds ratio of advanced stage for patients aged 30-49?",
        "0.90 (0.83, 0.98)",
    ),
    (
        "How many melanomas in advanced stage could be avoided without differences by deprivation?",
        "Deprivation: 320 (200, 440)",
    ),
    (
        "How many sera were positive for IgG in December?",
        "December: No. positive / IgM: 1; No. positive / IgG: 7",
    ),
    ("What was the activity of LipW on pNPC4?", "1.6±0.1"),
    ("What percentage of colorectal cancer cases had self-reported diabetes?", "(n=1878): 3.0"),
    ("What was the mean alcohol intake of colorectal cancer cases?", "10 (13.7)"),
    (
        "What was the hazard ratio of colorectal cancer after an induced or spontaneous abortion?",
        "1.00 (0.86–1.17)",
    ),
)
#: passages that the reader is shown
K = 8


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index")
    given = parser.parse_args()
    with Posology(index=given.index) as library:
        for questions in (QUESTIONS, ASIDE):
            _ask(library, questions)


def _ask(library: Posology, questions: tuple[tuple[str, str], ...]) -> None:
    first, quoted, found = 0, 0, 0
    for question, value in questions:
        answer = library.ask(question, k=K)
        hits = library.search(question, k=K).hits
        among = _place([library.passage(hit.passage.id).text for hit in hits], value)
        place = _place([one.quote for one in answer.evidence], value)
        first += place == 1
        quoted += place is not None
        found += among is not None
        lead = answer.evidence[0].quote if answer.evidence else answer.refusal
        print(f"quote {place or '–'} passage {among or '–'} | {question} | {lead}")
    print(f"{len(questions)} questions: passage found {found}, row quoted {quoted}, first {first}")


def _place(texts: list[str], value: str) -> int | None:
    return next((i for i, text in enumerate(texts, 1) if value in text), None)


if __name__ == "__main__":
    main()
