"""Sentences that share nearly all words with their source and say something else."""

from __future__ import annotations

import pytest

from nexi.proof import check_claim, prepare
from nexi.types import Verdict

PAGE = prepare("""# Harwick

The operator, Northmoor Transit, was bought by the Danish group Skovlund in 2021 for £96 million. The first trams could
run by the end of 2028. Brightwater sold its filter business to Oakhurst Partners in March 2022. Wearing amber glasses
was associated with faster sleep onset. Brazil is the second-largest producer of soybeans. Sandby has 14,300
inhabitants, Eastvik 6,900 and Nordhamn 2,150. The Lark models are splash-proof only and must not be submerged. The Act
came into force on 1 April 2012. The court must order a sum of not less than the deposit. Oakhurst was founded in 2003
by Ruth Calder; Castell Group was founded in 1978 by Emil Castell.
""")


@pytest.mark.parametrize(
    "text",
    [
        "The Danish group Skovlund bought Northmoor Transit in 2021 for £96 million.",
        "The first trams may run by the end of 2028.",
        "Oakhurst Partners bought Brightwater's filter business in March 2022.",
        "Brazil is the second-largest soybean producer.",
        "Eastvik has 6,900 inhabitants.",
        "The Act took effect on April 1, 2012.",
        "The sum is at least the deposit, ordered by the court.",
        "Ruth Calder founded Oakhurst in 2003.",
    ],
)
def test_a_truthful_rewording_passes(text: str) -> None:
    assert check_claim(text, {1: PAGE}).verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(
    "text",
    [
        "Northmoor Transit bought the Danish group Skovlund in 2021 for £96 million.",
        "The first trams will run by the end of 2028.",
        "Brightwater bought its filter business from Oakhurst Partners in March 2022.",
        "Wearing amber glasses caused faster sleep onset.",
        "Brazil is the largest producer of soybeans.",
        "Eastvik has 14,300 inhabitants.",
        "The Lark models may be submerged.",
        "The Act came into force on 1 April 2011.",
    ],
)
def test_a_lie_in_nearly_the_same_words_does_not(text: str) -> None:
    assert check_claim(text, {1: PAGE}).verdict is not Verdict.SUPPORTED
