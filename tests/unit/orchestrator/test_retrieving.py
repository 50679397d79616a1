from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.retrieval import make_expander
from orchestrator.settings import Settings
from posology.errors import ConfigurationError

DESCRIPTORS = """<?xml version="1.0"?>
<DescriptorRecordSet LanguageCode="eng"><DescriptorRecord DescriptorClass="1">
<DescriptorUI>D009203</DescriptorUI><DescriptorName><String>Myocardial Infarction</String></DescriptorName>
<ConceptList><Concept PreferredConceptYN="Y"><ConceptName><String>Myocardial Infarction</String></ConceptName>
<TermList><Term><String>Myocardial Infarction</String></Term><Term><String>Heart Attack</String></Term></TermList>
</Concept></ConceptList></DescriptorRecord></DescriptorRecordSet>
"""


def test_nothing_is_added_unless_it_is_switched_on() -> None:
    assert make_expander(Settings()) is None


def test_descriptors_are_read_from_the_named_file(tmp_path: Path) -> None:
    file = tmp_path / "desc.xml"
    file.write_text(DESCRIPTORS)
    expand = make_expander(Settings(POSOLOGY_EXPAND=f"mesh:{file}"))
    assert expand is not None
    assert expand("Is a heart attack likely?", None) == ("Myocardial Infarction",)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["magic", "mesh", "abbreviations:x", "mesh:/nowhere/desc.xml"])
def test_what_there_is_not_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match="POSOLOGY_EXPAND"):
        make_expander(Settings(POSOLOGY_EXPAND=wrong))
