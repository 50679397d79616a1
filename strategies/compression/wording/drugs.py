"""Drug names: recognise a drug by stem, by a list of names, or by a development code.

International non-proprietary names end in stems for the kind of substance ("-pril" inhibits the
angiotensin-converting enzyme), published by the WHO (*The use of stems in the selection of International
Nonproprietary Names (INN) for pharmaceutical substances*). Names without a stem are in a list. Brand names are not
recognised. Recognised words must not be dropped, so false positives are preferred to false negatives.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from posology.text._lexicon import words

#: Endings of names.
_SUFFIXES = words(
    # heart and vessels
    "pril prilat sartan vastatin statine olol alol dipine tiazem pamil zosin thiazide semide lactone renone "
    "xaban gatran grel parin parinux fibrate fibrozil trapib imibe vaptan entan ciguat dralazine rinone "
    "tilide bradine darone cainide oxidil teplase plase fiban kiren "
    # infection
    "cillin mycin micin kacin floxacin oxacin cycline penem bactam conazole nidazole bendazole fungin antel "
    "navir tegravir buvir asvir previr ciclovir cyclovir fovir amivir virine vudine citabine viroc vir "
    "quine "
    # nerves and mind
    "azepam azolam zepam zolam barbital caine curium curonium fentanil fentanyl orphine codone morphone "
    "oxetine traline triptyline ipramine pramine faxine peridol peridone apine azapine piprazole triptan "
    "racetam gabalin toin suximide bamate giline stigmine pidem zaleplon orexant melteon gepant "
    "promazine phenazine "
    # stomach, lungs, allergy
    "prazole prazan setron pitant tidine lukast terol tropium fylline phylline tadine irizine astine "
    # hormones and metabolism
    "gliptin gliflozin glitazone glutide glinide formin asone isone olone onide dronate dronic "
    "calcitol calcet gestrel estradiol relin relix trozole oxifene lutamide steride terone tocin pressin "
    "reotide paratide xostat "
    # pain and inflammation
    "profen oxicam coxib fenac metacin fenamate butazone limus "
    # cancer
    "mab tinib nib ciclib rafenib parib zomib lisib toclax platin rubicin taxel tecan arabine trexate trexed "
    "mustine fosfamide zolomide lidomide degib inostat vedotin tansine leucel rsen siran "
    # blood, biological, other
    "poetin grastim cept sidomine afil kinra prost azole sporin"
)
_PREFIXES = ("cef", "ceph", "sulfa", "sulpha", "peginterferon")

#: Ordinary words, enzymes and cells that begin or end like drugs.
_ORDINARY = words(
    "accept intercept percept precept except concept cephalad cephalic cephalus cephalometric cephalometry "
    "cephalometrically cephalocaudal cephalothorax cephalopelvic cephalomedullary cephalin cephalalgia "
    "cephalohematoma cephalosporium sulfate sulfatase sulfated sulfation sulfatide sulphate sulphatase "
    "sulphated sulphation worsen coarsen ghrelin mongrel precipitant fermentan polysulfone aldosterone "
    "corticosterone androsterone dihydrotestosterone deoxycorticosterone histidine cytidine deoxycytidine "
    "allantoin dithiocarbamate pyrrolidinedithiocarbamate diethyldithiocarbamate carbamate glucuronide "
    "cholesterol noncholesterol oxysterol phytosterol ergosterol desmosterol lactone butyrolactone "
    "wedelolactone imidazole benzimidazole pyrazole oxazolone pregnanolone etiocholanolone comparison "
    "garrison liaison poison antiheparin follistatin cystatin angiostatin endostatin myostatin"
)


def is_drug(word: str) -> bool:
    """Return whether a word names a drug or a class of drugs.

    Args:
        word: a word without outer punctuation; of a compound ("aspirin-treated") any part may be a drug.
    """
    if _CODE.fullmatch(word):
        return not _NO_CODE.match(word)
    lower = word.lower()
    if _named(lower):
        return True
    return len(parts := _JOINTS.split(lower)) > 1 and any(map(_named, parts))


_JOINTS = re.compile(r"[-–‐/+,;()\[\]]")
#: Development codes: BMS-986165, MK-3475, GSK1120212, CP-690,550.
_CODE = re.compile(
    r"(?:ABBV|ABT|AMG|ARN|ASP|AZD|BAY|BGB|BI|BIBF|BIBR|BIIB|BMS|BMN|CGP|CHIR|CI|CNTO|CP|CX|EMD|EPZ|FG|FK|FTY|GDC|GS|"
    r"GSK|GW|INCB|JNJ|KW|LCZ|LDC|LEE|LY|LU|MDL|MDX|MEDI|MGCD|MK|MLN|NVP|ONO|OSI|PD|PF|PKC|PLX|PNU|PTK|REGN|RG|RO|"
    r"RU|SB|SCH|SKF|SM|SR|STI|SU|TAK|TMC|UCB|UK|VX|WAY|WIN|WY|YM|ZD|ZK)[- ]?\d{3,}(?:[-,]\d+)*[A-Za-z]?"
    r"|[A-Z]{2,4}-\d{4,}[A-Z]?"
)
#: Codes of trials, years and registers, which are no drugs.
_NO_CODE = re.compile(
    r"[A-Z]+-?(?:19|20)\d\d$|(?:NCT|ISRCTN|PMID|CRD|ICD|ISO|ATCC|DSM|PMC|DRKS|SMMC|SGC|HT|ZR|CCL|CRL)-?\d"
)
#: Minimum letters of a name that is recognised by its stem.
_SHORTEST = 6


@cache
def names() -> frozenset[str]:
    """Return the listed names, lower case."""
    text = resources.files(__package__).joinpath("data/drug_names.txt").read_text(encoding="utf-8")
    return words("\n".join(line for line in text.splitlines() if not line.startswith("#")))


_ENDS = re.compile(rf"[^\W\d_]{{2,}}(?:{'|'.join(sorted(_SUFFIXES))})")


def _named(word: str) -> bool:
    if word in names():
        return True
    if len(word) < _SHORTEST or word in _ORDINARY:
        return False
    if word.startswith(_PREFIXES):
        return True
    one = word.removesuffix("s")
    return bool(_ENDS.fullmatch(one)) and one not in _ORDINARY
