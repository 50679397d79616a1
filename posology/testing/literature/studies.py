"""Study records of the stub, in the form of ClinicalTrials.gov's API 2 (its schemas ``Study`` and ``OutcomeMeasure``).

All texts are written for the stub.
"""

from __future__ import annotations

from typing import Any

_ARMS = ("Stubazole 20 mg", "Placebo")


def study(
    number: str,
    title: str,
    *,
    status: str = "COMPLETED",
    why: str | None = None,
    results: dict[str, Any] | None = None,
    **modules: dict[str, Any],
) -> dict[str, Any]:
    """Return a record.

    Args:
        number: its registration number.
        title: its title.
        status: its overall status.
        why: why it was stopped.
        results: its results section; ``None``: none are posted.
        modules: more modules of the protocol, or others in their place.
    """
    stopped = {"whyStopped": why} if why else {}
    protocol: dict[str, Any] = {
        "identificationModule": {"nctId": number, "briefTitle": title, "officialTitle": title},
        "statusModule": {
            "overallStatus": status,
            "startDateStruct": {"date": "2019-03", "type": "ACTUAL"},
            "studyFirstPostDateStruct": {"date": "2019-01-15", "type": "ACTUAL"},
            **({"resultsFirstPostDateStruct": {"date": "2022-05-02"}} if results else {}),
            **stopped,
        },
        "sponsorCollaboratorsModule": {"leadSponsor": {"name": "Stub Institute", "class": "OTHER"}},
        "descriptionModule": {"briefSummary": "Adults with gout were given stubazole or placebo."},
        "conditionsModule": {"conditions": ["Gout"]},
        "designModule": {
            "studyType": "INTERVENTIONAL",
            "phases": ["PHASE3"],
            "designInfo": {
                "allocation": "RANDOMIZED",
                "interventionModel": "PARALLEL",
                "primaryPurpose": "TREATMENT",
                "maskingInfo": {"masking": "DOUBLE", "whoMasked": ["PARTICIPANT", "INVESTIGATOR"]},
            },
            "enrollmentInfo": {"count": 200, "type": "ACTUAL"},
        },
    }
    return {
        "protocolSection": protocol | modules,
        "derivedSection": {
            "conditionBrowseModule": {"meshes": [{"id": "D006073", "term": "Gout"}]}
        },
        "hasResults": results is not None,
        **({"resultsSection": results} if results else {}),
    }


def groups(prefix: str, *titles: str) -> list[dict[str, Any]]:
    """Return the arms of a table of results."""
    return [{"id": f"{prefix}{n:03}", "title": title} for n, title in enumerate(titles or _ARMS)]


def counts(prefix: str, *values: str) -> list[dict[str, Any]]:
    """Return the numbers of participants of arms."""
    found = [{"groupId": f"{prefix}{n:03}", "value": value} for n, value in enumerate(values)]
    return [{"units": "Participants", "counts": found}]


def measured(title: str, **values: dict[str, str]) -> dict[str, Any]:
    """Return a class of one category: measurements by the ids of arms."""
    found = [{"groupId": arm, **value} for arm, value in values.items()]
    return (
        {"title": title, "categories": [{"measurements": found}]}
        if title
        else {"categories": [{"measurements": found}]}
    )


_RESULTS: dict[str, Any] = {
    "participantFlowModule": {
        "groups": groups("FG"),
        "periods": [
            {
                "title": "Overall Study",
                "milestones": [
                    {
                        "type": kind,
                        "achievements": [
                            {"groupId": "FG000", "numSubjects": first},
                            {"groupId": "FG001", "numSubjects": second},
                        ],
                    }
                    for kind, first, second in (
                        ("STARTED", "101", "99"),
                        ("COMPLETED", "94", "88"),
                        ("NOT COMPLETED", "7", "11"),
                    )
                ],
                "dropWithdraws": [
                    {
                        "type": "Lost to Follow-up",
                        "reasons": [
                            {"groupId": "FG000", "numSubjects": "7"},
                            {"groupId": "FG001", "numSubjects": "11"},
                        ],
                    }
                ],
            }
        ],
    },
    "baselineCharacteristicsModule": {
        "groups": groups("BG"),
        "denoms": counts("BG", "101", "99"),
        "measures": [
            {
                "title": "Age, Continuous",
                "paramType": "MEAN",
                "dispersionType": "STANDARD_DEVIATION",
                "unitOfMeasure": "years",
                "classes": [
                    measured(
                        "",
                        BG000={"value": "54.2", "spread": "11.3"},
                        BG001={"value": "53.8", "spread": "10.9"},
                    )
                ],
            },
            {
                "title": "Sex: Female, Male",
                "paramType": "COUNT_OF_PARTICIPANTS",
                "unitOfMeasure": "Participants",
                "classes": [
                    {
                        "categories": [
                            {
                                "title": title,
                                "measurements": [
                                    {"groupId": "BG000", "value": first},
                                    {"groupId": "BG001", "value": second},
                                ],
                            }
                            for title, first, second in (
                                ("Female", "23", "27"),
                                ("Male", "78", "72"),
                            )
                        ]
                    }
                ],
            },
        ],
    },
    "outcomeMeasuresModule": {
        "outcomeMeasures": [
            {
                "type": "PRIMARY",
                "title": "Change in Serum Urate",
                "description": "Change from baseline; negative values mean less urate.",
                "populationDescription": "All participants with a measurement at week 26",
                "reportingStatus": "POSTED",
                "paramType": "MEAN",
                "dispersionType": "Standard Deviation",
                "unitOfMeasure": "mg/dL",
                "timeFrame": "Baseline to week 26",
                "groups": groups("OG"),
                "denoms": counts("OG", "94", "88"),
                "classes": [
                    measured(
                        "",
                        OG000={"value": "-2.4", "spread": "1.1"},
                        OG001={"value": "-0.3", "spread": "0.9"},
                    )
                ],
                "analyses": [
                    {
                        "groupIds": ["OG000", "OG001"],
                        "nonInferiorityType": "SUPERIORITY",
                        "pValue": "<0.001",
                        "statisticalMethod": "ANCOVA",
                        "paramType": "Mean Difference (Final Values)",
                        "paramValue": "-2.1",
                        "ciPctValue": "95",
                        "ciNumSides": "TWO_SIDED",
                        "ciLowerLimit": "-2.4",
                        "ciUpperLimit": "-1.8",
                    }
                ],
            },
            {
                "type": "SECONDARY",
                "title": "Number of Participants With a Gout Flare",
                "reportingStatus": "POSTED",
                "paramType": "COUNT_OF_PARTICIPANTS",
                "unitOfMeasure": "Participants",
                "timeFrame": "26 weeks",
                "groups": groups("OG"),
                "denoms": counts("OG", "101", "99"),
                "classes": [
                    measured("Week 13", OG000={"value": "14"}, OG001={"value": "31"}),
                    {
                        **measured("Week 26", OG000={"value": "9"}, OG001={"value": "26"}),
                        "denoms": counts("OG", "94", "88"),
                    },
                ],
            },
            {
                "type": "SECONDARY",
                "title": "Time to First Flare",
                "reportingStatus": "POSTED",
                "paramType": "MEDIAN",
                "dispersionType": "95% Confidence Interval",
                "unitOfMeasure": "days",
                "timeFrame": "26 weeks",
                "groups": groups("OG"),
                "denoms": counts("OG", "101", "99"),
                "classes": [
                    measured(
                        "",
                        OG000={"value": "NA", "comment": "the median was not reached"},
                        OG001={"value": "118", "lowerLimit": "97", "upperLimit": "141"},
                    )
                ],
            },
            {
                "type": "OTHER_PRE_SPECIFIED",
                "title": "Quality of Life",
                "reportingStatus": "NOT_POSTED",
                "anticipatedPostingDate": "2027-01",
            },
        ]
    },
    "adverseEventsModule": {
        "frequencyThreshold": "5",
        "timeFrame": "26 weeks",
        "eventGroups": [
            {
                "id": f"EG{n:03}",
                "title": title,
                "deathsNumAffected": deaths,
                "deathsNumAtRisk": at_risk,
                "seriousNumAffected": serious,
                "seriousNumAtRisk": at_risk,
                "otherNumAffected": other,
                "otherNumAtRisk": at_risk,
            }
            for n, (title, deaths, serious, other, at_risk) in enumerate(
                ((_ARMS[0], 0, 6, 41, 101), (_ARMS[1], 1, 5, 38, 99))
            )
        ],
        "seriousEvents": [],
    },
    "moreInfoModule": {"limitationsAndCaveats": {"description": "Few women took part"}},
}

#: a completed study with results, one that was stopped, one that never began
STUDIES: tuple[dict[str, Any], ...] = (
    study(
        "NCT90000001",
        "Stubazole Against Placebo in Adults With Gout",
        results=_RESULTS,
        armsInterventionsModule={
            "armGroups": [
                {
                    "label": "Stubazole 20 mg",
                    "type": "EXPERIMENTAL",
                    "description": "One tablet a day",
                    "interventionNames": ["Drug: Stubazole"],
                },
                {"label": "Placebo", "type": "PLACEBO_COMPARATOR"},
            ],
            "interventions": [{"type": "DRUG", "name": "Stubazole"}],
        },
        outcomesModule={
            "primaryOutcomes": [
                {"measure": "Change in Serum Urate", "timeFrame": "Baseline to week 26"}
            ]
        },
        eligibilityModule={
            "eligibilityCriteria": "Inclusion Criteria:\n\n* Serum urate \\>= 7 mg/dL\n* Two flares in a year",
            "sex": "ALL",
            "minimumAge": "18 Years",
        },
        referencesModule={
            "references": [
                {
                    "pmid": "90000003",
                    "type": "RESULT",
                    "citation": "Stub A. High-dose aspirin abolishes stroke. J Stub. 2024",
                    "retractions": [{"pmid": "90000009", "source": "J Stub. 2025"}],
                }
            ]
        },
    ),
    study(
        "NCT90000002",
        "Stubazole at High Dose in Gout",
        status="TERMINATED",
        why="Slow accrual",
        results={"participantFlowModule": _RESULTS["participantFlowModule"]},
    ),
    study("NCT90000003", "Stubazole in Children", status="WITHDRAWN", why="No funding"),
)
