"""The closed word lists that decide whether a full stop ends a sentence.

All entries but :data:`STARTERS` are lower case and without their final stop. A word in capitals is
never looked up as an abbreviation: it is an acronym ("patients with MS").
"""

from __future__ import annotations


def words(line: str) -> frozenset[str]:
    """Return the words of a line, as a set."""
    return frozenset(line.split())


#: Abbreviations that always point at what follows them.
NEVER_FINAL = words(
    "e.g eg i.e ie cf vs v.s viz approx appr ca fig figs eq eqs tab vol vols pp ref refs dr drs "
    "prof mr mrs ms st mt med exp var subsp ssp cv conc resp incl excl ed eds dept univ proc natl "
    "acad sci biol biochem immunol virol physiol pharmacol"
)

#: Abbreviations only in front of a number: "No. 5", but "Was it effective? No. The …".
NUMBERED = words(
    "no nos p ch chap sec sect art ver jan feb mar apr jun jul aug sept sep oct nov dec"
)

#: Abbreviations that end a sentence only if a word of :data:`STARTERS` follows. Dotted ones
#: ("i.v.", "a.m.", "U.S.") are recognised by their shape.
SELDOM_FINAL = words(
    "al etc spp sp inc ltd co corp jr sr nov avg temp wt wk wks iv im sc po bid tid qid prn"
)

#: Words before a single capital that make it a person's initial ("by E. Verdin").
NAME_LINKS = frozenset({"and", "&", "by", "from", "with", "dr.", "prof.", "mr.", "mrs.", "see"})

#: Lower-case names that begin sentences ("alpha 4 integrins mediate …").
GREEK = words(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega α β γ δ ε ζ η θ ι κ λ μ µ ν ξ π ρ σ τ υ φ χ ψ ω"
)

#: Words that, capitalised after a full stop, begin a sentence whatever stood before it.
STARTERS = words(
    "A After All Although Among An And Another As At Because Before Besides Both But By Compared "
    "Consequently Conversely Despite Due During Each Either Even Finally First For Four From "
    "Further Furthermore Given Hence Here His How However If Importantly In Indeed Interestingly "
    "It Its Later Many More Moreover Most Neither Nevertheless No None Nonetheless Nor Not Of On "
    "Once One Only Other Our Overall Patients Previously Recently Results Second Several She "
    "Similarly Since Six Some Still Subsequently Such Surprisingly Taken That The Their Then "
    "There Thereafter Therefore These They Third This Those Three Through Thus To Together Two "
    "Under Unlike Until Upon Using We What When Whereas Whether Which While With Within Without "
    "You"
)
