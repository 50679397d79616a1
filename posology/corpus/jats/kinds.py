"""JATS' words for kinds of articles and for languages, in MEDLINE's words, which filters compare."""

from __future__ import annotations

#: ``article-type`` to publication types; what has no counterpart has none
PUBLICATION_TYPES: dict[str, tuple[str, ...]] = {
    "research-article": ("Journal Article",),
    "brief-report": ("Journal Article",),
    "rapid-communication": ("Journal Article",),
    "other": (),
    "review-article": ("Journal Article", "Review"),
    "systematic-review": ("Journal Article", "Systematic Review"),
    "meta-analysis": ("Journal Article", "Meta-Analysis"),
    "case-report": ("Journal Article", "Case Reports"),
    "clinical-trial": ("Journal Article", "Clinical Trial"),
    "data-paper": ("Journal Article", "Dataset"),
    "editorial": ("Editorial",),
    "letter": ("Letter",),
    "reply": ("Letter", "Comment"),
    "article-commentary": ("Comment",),
    "news": ("News",),
    "correction": ("Published Erratum",),
    "retraction": ("Retraction of Publication",),
    "retracted-article": ("Journal Article", "Retracted Publication"),
    "expression-of-concern": ("Expression of Concern",),
    "preprint": ("Preprint",),
    # Europe PMC's
    "preprint-withdrawal": ("Preprint", "Retracted Publication"),
    "preprint-removal": ("Preprint", "Retracted Publication"),
}

#: headings under which journals print articles, in lower case, to the publication types of that name
SUBJECTS: dict[str, str] = {
    name.casefold(): name
    for name in (
        "Randomized Controlled Trial", "Controlled Clinical Trial", "Clinical Trial", "Clinical Trial Protocol",
        "Systematic Review", "Meta-Analysis", "Review", "Case Reports", "Practice Guideline", "Guideline",
        "Observational Study", "Multicenter Study", "Comparative Study", "Validation Study", "Editorial", "Letter",
        "Comment", "Preprint", "Expression of Concern", "Retraction of Publication", "Retracted Publication",
    )
} | {
    "review article": "Review",
    "case report": "Case Reports",
    "guidelines": "Guideline",
    "meta analysis": "Meta-Analysis",
    "meta-analyses": "Meta-Analysis",
    "randomised controlled trial": "Randomized Controlled Trial",
    "randomized clinical trial": "Randomized Controlled Trial",
    "systematic reviews": "Systematic Review",
}  # fmt: skip

#: ISO 639-1, as ``xml:lang`` has it, to MEDLINE's codes, which are ISO 639-2's bibliographic ones
LANGUAGES: dict[str, str] = {
    "af": "afr", "ar": "ara", "bg": "bul", "bs": "bos", "ca": "cat", "cs": "cze", "da": "dan", "de": "ger",
    "el": "gre", "en": "eng", "es": "spa", "et": "est", "fa": "per", "fi": "fin", "fr": "fre", "he": "heb",
    "hr": "hrv", "hu": "hun", "hy": "arm", "id": "ind", "is": "ice", "it": "ita", "ja": "jpn", "ka": "geo",
    "ko": "kor", "lt": "lit", "lv": "lav", "mk": "mac", "ms": "may", "nl": "dut", "no": "nor", "pl": "pol",
    "pt": "por", "ro": "rum", "ru": "rus", "sk": "slo", "sl": "slv", "sq": "alb", "sr": "srp", "sv": "swe",
    "th": "tha", "tr": "tur", "uk": "ukr", "vi": "vie", "zh": "chi",
    # ISO 639-2 has two codes for some, of which MEDLINE has the other
    "ces": "cze", "deu": "ger", "ell": "gre", "fas": "per", "fra": "fre", "hye": "arm", "isl": "ice", "kat": "geo",
    "mkd": "mac", "msa": "may", "nld": "dut", "ron": "rum", "slk": "slo", "sqi": "alb", "zho": "chi",
}  # fmt: skip
