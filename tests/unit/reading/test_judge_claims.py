"""The packaged judge on twenty claims written for this test: a paraphrase of each text, and its opposite."""

from __future__ import annotations

from posology.reading.judge import Judge
from posology.types import Stance
from strategies.support.check import SUPPORTED

#: text, a paraphrase that anybody would accept, and what the text says the opposite of
CLAIMS = [
    (
        "Patients assigned to metformin lost 2.1 kg more weight over six months than those assigned to placebo.",
        "Metformin led to greater weight loss than placebo.",
        "Metformin led to less weight loss than placebo.",
    ),
    (
        "Thirty-day mortality did not differ between the restrictive and the liberal transfusion strategy.",
        "Restrictive and liberal transfusion had similar mortality at 30 days.",
        "Restrictive transfusion lowered mortality at 30 days.",
    ),
    (
        "Smokers had a twofold higher risk of postoperative wound infection than people who had never smoked.",
        "Smoking was associated with more wound infections after surgery.",
        "Smoking was associated with fewer wound infections after surgery.",
    ),
    (
        "Adding ezetimibe to a statin reduced LDL cholesterol by a further 24 %.",
        "LDL cholesterol fell further when ezetimibe was added to a statin.",
        "Ezetimibe added to a statin raised LDL cholesterol.",
    ),
    (
        "Screening with low-dose CT lowered deaths from lung cancer compared with chest radiography.",
        "Fewer people died of lung cancer with low-dose CT screening than with chest radiography.",
        "More people died of lung cancer with low-dose CT screening than with chest radiography.",
    ),
    (
        "Vitamin D supplements had no effect on the incidence of fractures in healthy older adults.",
        "Vitamin D did not prevent fractures in healthy older people.",
        "Vitamin D prevented fractures in healthy older people.",
    ),
    (
        "Hypoglycaemia was more frequent with insulin glargine than with liraglutide (18 % versus 6 %).",
        "Liraglutide caused hypoglycaemia less often than insulin glargine.",
        "Liraglutide caused hypoglycaemia more often than insulin glargine.",
    ),
    (
        "Exclusive breastfeeding for six months was associated with a lower risk of otitis media in the first year of life.",
        "Infants who were exclusively breastfed for six months had otitis media less often.",
        "Infants who were exclusively breastfed for six months had otitis media more often.",
    ),
    (
        "The trial was stopped early because major bleeding was significantly more common in the apixaban group.",
        "Major bleeding occurred more often with apixaban, and the trial was stopped early.",
        "The trial was stopped early because apixaban reduced major bleeding.",
    ),
    (
        "Cognitive behavioural therapy was superior to waiting list for symptoms of insomnia.",
        "Symptoms of insomnia improved more with cognitive behavioural therapy than on a waiting list.",
        "Cognitive behavioural therapy was no better than a waiting list for insomnia.",
    ),
    (
        "Serum ferritin correlated inversely with physical performance in women older than 70 years.",
        "In women over 70, higher ferritin went with poorer physical performance.",
        "In women over 70, higher ferritin went with better physical performance.",
    ),
    (
        "Tamoxifen reduced recurrence in women with oestrogen-receptor-positive tumours only.",
        "Tamoxifen lowered recurrence in oestrogen-receptor-positive disease.",
        "Tamoxifen lowered recurrence in oestrogen-receptor-negative tumours.",
    ),
    (
        "Most adverse events were mild and resolved without treatment.",
        "Side effects were usually mild and went away on their own.",
        "Most side effects were severe.",
    ),
    (
        "Neither drug improved survival, but both reduced the need for mechanical ventilation.",
        "Both drugs made mechanical ventilation less often necessary.",
        "Both drugs improved survival.",
    ),
    (
        "Laparoscopic repair resulted in a shorter hospital stay than open repair, at higher cost.",
        "Open repair cost less than laparoscopic repair.",
        "Patients stayed in hospital longer after laparoscopic than after open repair.",
    ),
    (
        "The mutation was found in 12 of 15 affected family members and in none of the unaffected ones.",
        "No unaffected family member carried the mutation.",
        "The mutation was found in unaffected family members, too.",
    ),
    (
        "Physical activity was protective against colon cancer in men (relative risk 0.76) but not in women.",
        "Active men had a lower risk of colon cancer.",
        "Physical activity protected women against colon cancer.",
    ),
    (
        "Azithromycin failed to shorten the duration of cough in children with bronchiolitis.",
        "In children with bronchiolitis, azithromycin did not make the cough shorter.",
        "Azithromycin shortened cough in children with bronchiolitis.",
    ),
    (
        "Withdrawal of proton pump inhibitors caused rebound acid hypersecretion in healthy volunteers.",
        "Healthy volunteers had rebound acid hypersecretion after they stopped proton pump inhibitors.",
        "Stopping proton pump inhibitors did not change acid secretion in healthy volunteers.",
    ),
    (
        "Women who received magnesium sulphate had half the risk of eclampsia of those who received placebo.",
        "Magnesium sulphate halved the risk of eclampsia.",
        "Magnesium sulphate doubled the risk of eclampsia.",
    ),
]
_SUPPORTS = list(Stance).index(Stance.SUPPORTS)


def test_paraphrases_are_called_supported_or_likely_and_no_opposite_is() -> None:
    """Where it is not sure it abstains: of half of the paraphrases it is not, too (see its card)."""
    assert len(CLAIMS) == 20
    judge = Judge.packaged()
    right = judge.judge([(paraphrase, text) for text, paraphrase, _ in CLAIMS])[:, _SUPPORTS]
    wrong = judge.judge([(opposite, text) for text, _, opposite in CLAIMS])[:, _SUPPORTS]
    assert (right >= SUPPORTED).any()
    assert (right > 0.7).sum() >= 10
    assert (wrong < 0.7).all()


def test_a_sentence_that_says_the_same_in_nearly_the_same_words_is_called_supported() -> None:
    text = (
        "Vitamin D supplements had no effect on the incidence of fractures in healthy older adults."
    )
    (said,) = Judge.packaged().judge(
        [("Vitamin D had no effect on fractures in older adults.", text)]
    )
    assert said[_SUPPORTS] >= SUPPORTED
