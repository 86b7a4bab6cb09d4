"""Verdicts by intervals, orders by Spearman, tables as people read them."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions import CoalitionStructure, adjusted_rand_index
from learners.experiments.paired_statistics import Difference
from learners.reproduction.claims import (
    Claim,
    Measured,
    above,
    best,
    beyond,
    exact,
    mostly,
    near,
    order_agreement,
)
from learners.reproduction.experiment import EXPERIMENTS
from learners.reproduction.experiments.fedc2i_tables import influence_of_two
from learners.reproduction.experiments.open_settings import may_be_pure
from learners.reproduction.pages import (
    comma_separated,
    earlier_figures,
    latex,
    markdown,
    summary_page,
)
from learners.reproduction.printed import PaperTable, Printed, paper_table

FOUND = Measured(
    ("here", "there"),
    {
        "ours": {"here": [5.0, 6.0, 7.0], "there": [1.0, 2.0, 3.0]},
        "theirs": {"here": [1.0, 2.1, 3.0], "there": [1.1, 1.9, 3.0]},
        "none_at_all": {"here": [0.0, 0.0, 0.1]},
    },
)
PRINTED = PaperTable(
    "A paper", "Table 1", "%", ("here", "there"),
    {"ours": {"here": Printed(9.0, 0.5)}, "theirs": {"here": Printed(8.0)}},
)  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (Difference(1.0, 0.1, 2.0), "holds"),
        (Difference(1.0, -0.1, 2.0), "cannot be told"),
        (Difference(-1.0, -2.0, -0.1), "does not hold"),
        (Difference(1.0, None, None), "cannot be told"),
        (None, "cannot be told"),
    ],
)
def test_a_verdict_is_where_the_interval_lies(ours, verdict):
    assert Claim("", None, ours).verdict == verdict


def test_a_lead_is_over_the_best_of_the_others():
    claim = best(FOUND, "ours", "here", PRINTED)
    assert "decided by theirs" in claim.why
    assert claim.paper == 1.0
    assert claim.ours.mean == pytest.approx((4.0 + 3.9 + 4.0) / 3)
    assert claim.verdict == "holds"
    assert best(FOUND, "theirs", "here").verdict == "does not hold"
    assert above(FOUND, "ours", "theirs", "there").verdict == "level"
    assert above(FOUND, "ours", "none_at_all", "there").ours is None


def test_a_lead_over_all_is_decided_by_each_of_them():
    rows = {
        "ours": [5.0, 6.0, 7.0, 6.0],
        "high and sure": [4.0, 5.1, 6.0, 5.0],  # the highest mean, and surely below
        "low and unsure": [0.0, 9.0, 1.0, 8.0],
        "surely above": [5.5, 6.4, 7.5, 6.5],
        "surely far above": [9.0, 8.0, 11.0, 9.0],
    }
    found = Measured(("c",), {row: {"c": values} for row, values in rows.items()})
    assert best(found, "ours", "c", among=("high and sure",)).verdict == "holds"
    unsure = best(found, "ours", "c", among=("high and sure", "low and unsure"))
    assert unsure.verdict == "cannot be told"
    assert "decided by low and unsure" in unsure.why
    # Whoever is surely above decides, even beside one with a higher mean but less certainty.
    for rival in ("surely above", "surely far above"):
        claim = best(found, "ours", "c", among=("low and unsure", rival))
        assert claim.verdict == "does not hold"
        assert f"decided by {rival}, adjusted for 2 rivals" in claim.why
    # Of several, it is the one who is above most surely.
    assert "decided by surely above, adjusted for 4 rivals" in best(found, "ours", "c").why
    once = Measured(("c",), {"ours": {"c": [5.0]}, "a": {"c": [4.0]}, "b": {"c": [6.0]}})
    claim = best(once, "ours", "c")
    assert (claim.ours.mean, claim.verdict) == (-1.0, "cannot be told")
    assert "decided by b" in claim.why
    assert best(once, "ours", "no such column").ours is None


def test_whoever_is_found_to_be_better_among_many_must_be_so_after_an_adjustment():
    # Alone, the rival is better: t = -3.65 with 9 degrees of freedom, p = 0.0053.
    gaps = np.array([-1.0, 1.0] * 5)
    gaps = gaps / gaps.std(ddof=1) - 3.65 / 10**0.5
    rows = {"ours": gaps.tolist(), "rival": [0.0] * 10}
    rows |= {f"far below {i}": [-20.0 + g for g in gaps[::-1]] for i in range(9)}
    found = Measured(("c",), {row: {"c": values} for row, values in rows.items()}, "none")
    alone = best(found, "ours", "c", among=("rival",))
    assert (alone.verdict, alone.confidence) == ("does not hold", 0.95)
    among_ten = best(found, "ours", "c")
    assert among_ten.verdict == "cannot be told"
    assert "decided by rival, adjusted for 10 rivals" in among_ten.why
    assert among_ten.confidence == pytest.approx(0.995)
    among_nine = [row for row in rows if row != "far below 0"]
    assert best(found, "ours", "c", among=among_nine).verdict == "does not hold"  # 9 × 0.0053
    # To be above each needs no adjustment: the interval is that of a single comparison.
    lead = best(found, "rival", "c", among=("ours",))
    assert (lead.verdict, lead.confidence) == ("holds", 0.95)


def test_a_lead_over_all_does_not_hold_where_a_rival_was_not_measured():
    found = Measured(("c",), {"ours": {"c": [5.0, 6.0, 7.0]}, "a": {"c": [1.0, 2.1, 3.0]}})
    assert best(found, "ours", "c", among=("a",)).verdict == "holds"
    claim = best(found, "ours", "c", among=("a", "b"))
    assert claim.verdict == "cannot be told"
    assert "b is missing" in claim.why


def test_what_is_narrow_enough_is_level():
    assert Claim("", None, Difference(0.1, -0.9, 0.9), margin=1.0).verdict == "level"
    assert Claim("", None, Difference(0.1, -0.9, 0.9)).verdict == "cannot be told"
    assert Claim("", None, Difference(0.1, -0.9, 1.0), margin=1.0).verdict == "cannot be told"
    # What the paper prints is outside.
    assert Claim("", 2.0, Difference(0.0, -1.9, 1.9), margin=1.0).verdict == "level"
    assert Claim("", 2.0, Difference(0.0, -2.1, 2.1), margin=1.0).verdict == "cannot be told"
    # A paper that contradicts itself has no lead to leave out.
    assert Claim("", -0.5, Difference(0.0, -2.0, 2.0), margin=1.0).verdict == "cannot be told"
    # Whoever is surely better or worse is not level, however little it is.
    assert Claim("", None, Difference(0.5, 0.1, 0.9), margin=1.0).verdict == "holds"
    assert Claim("", None, Difference(-0.5, -0.9, -0.1), margin=1.0).verdict == "does not hold"


def test_only_points_of_accuracy_have_a_margin():
    rows = {"a": {"c": [1.0, 1.1, 0.9]}, "b": {"c": [1.1, 0.9, 1.0]}}
    assert above(Measured(("c",), rows), "a", "b", "c").verdict == "level"
    assert above(Measured(("c",), rows, "dB"), "a", "b", "c").verdict == "cannot be told"
    assert best(Measured(("c",), rows), "a", "c").verdict == "level"


def test_most_seeds_are_more_than_a_half_by_the_exact_interval():
    assert mostly("", [True] * 5).verdict == "cannot be told"
    assert mostly("", [True] * 6).verdict == "holds"
    assert mostly("", [False] * 6).verdict == "does not hold"
    assert mostly("", [True] * 6, confidence=0.975).verdict == "cannot be told"


def test_printed_differences_have_the_papers_own_p():
    claim = best(FOUND, "ours", "here", PRINTED)
    assert claim.paper_p is None  # theirs has no ±
    printed = paper_table("cffl-table2")
    column = "no adversary"
    rows = {row: {column: [1.0, 2.0]} for row in ("ICA", "IFCA", "FA")}
    claim = best(Measured((column,), rows), "ICA", column, printed)
    assert claim.paper_p == pytest.approx(printed.p_value("ICA", "IFCA", column))
    assert claim.document()["paper_p"] == pytest.approx(claim.paper_p)
    assert printed.p_value("ICA", "IFCA", column) == pytest.approx(0.78, abs=0.005)


def test_added_seeds_widen_the_intervals():
    experiment = EXPERIMENTS["cffl-fig6"]()
    found = Measured(
        ("adjusted Rand index", "adversaries kept out"),
        {
            row: {"adjusted Rand index": [0.5 + i / 10] * 6, "adversaries kept out": [1.0] * 6}
            for i, row in enumerate(("IFCA", "COS"))
        },
    )
    first = {claim.verdict for claim in experiment.judged(found, {}, "small", 3)}
    assert first == {"holds"}
    second = experiment.judged(found, {}, "small", 6)
    assert [claim.confidence for claim in second] == [0.975] * 3
    assert second[1].verdict == "cannot be told"


def test_a_pure_structure_has_one_of_few_indices():
    domains = [0] * 3 + [1] * 3 + [2] * 3
    for labels in ([0, 0, 1, 2, 2, 2, 3, 4, 5], list(range(9)), domains):
        index = adjusted_rand_index(
            CoalitionStructure.from_labels(labels), CoalitionStructure.from_labels(domains)
        )
        assert may_be_pure(index, 3, 3)
    mixed = CoalitionStructure.from_labels([0, 1, 2, 0, 1, 2, 0, 1, 2])
    index = adjusted_rand_index(mixed, CoalitionStructure.from_labels(domains))
    assert not may_be_pure(index, 3, 3)


def test_what_no_paper_claims_is_told_apart():
    claims = [above(FOUND, "ours", "theirs", "here"), exact("mine", 1.0, added=True)]
    assert [claim.document()["added"] for claim in claims] == [False, True]
    papers, _, added = markdown(FOUND, None, claims).partition("| asked beside the paper |")
    assert "ours is above theirs" in papers
    assert "mine" in added
    assert "mine" not in papers
    one = {"name": "cffl-x", "scale": "small", "seeds": [0], "order": {}, "seeds_added": False,
           "tried": ["x was y"], "claims": [claim.document() for claim in claims]}  # fmt: skip
    page = summary_page([one])
    assert "1 claims: 1 hold, 0 do not hold, 0 level, 0 cannot be told." in page
    told, _, tried = page.partition("## What was tried")
    assert "mine" not in told
    assert "mine" in tried
    assert "x was y" in tried


def test_a_papers_lead_is_over_the_rivals_that_are_named():
    printed = paper_table("cffl-table1")
    column = "mean, 200 images"
    assert printed.lead("ICA", column) == pytest.approx(83.6 - 84.3)  # Dom is above it
    assert printed.lead("ICA", column, ("IFCA", "FA", "Loc")) == pytest.approx(83.6 - 83.2)
    assert printed.lead("ICA", column, ("FedProx",)) is None


def test_what_is_counted_has_no_spread():
    assert exact("", 0.5).verdict == "holds"
    assert exact("", 0.0).verdict == "does not hold"


def test_a_level_is_passed_by_the_interval_not_by_the_worst_seed():
    claim = beyond("", [100.0, 100.0, 80.0], 95.0)
    assert claim.ours.mean == pytest.approx(-5 / 3)
    assert claim.verdict == "cannot be told"
    assert beyond("", [96.0, 97.0, 98.0], 90.0).verdict == "holds"
    assert beyond("", [96.0], 90.0).verdict == "cannot be told"


@pytest.mark.parametrize(
    ("figures", "room", "verdict"),
    [
        ([9.9, 10.0, 10.1], 1.0, "holds"),
        ([7.9, 8.0, 8.1], -1.0, "does not hold"),
        ([11.9, 12.0, 12.1], -1.0, "does not hold"),
        ([9.0, 10.0, 11.0], 1.0, "cannot be told"),
        ([10.0], 1.0, "cannot be told"),
    ],
)
def test_near_is_an_interval_that_lies_within(figures, room, verdict):
    claim = near("", figures, 10.0, within=1.0)
    assert claim.ours.mean == pytest.approx(room)
    assert claim.verdict == verdict


def test_orders_that_do_not_exist_have_no_agreement():
    assert order_agreement({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0}) is None
    assert order_agreement({"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 1.0, "b": 2.0, "c": 3.0}) is None
    assert order_agreement({"a": 1, "b": 2, "c": 3}, {"a": 3.0, "b": 2.0, "c": 1.0}) == -1.0


def test_tables_have_both_figures():
    text = markdown(FOUND, PRINTED, [best(FOUND, "ours", "here", PRINTED)])
    assert "| ours | 6.00 ± 1.00 (9 ± 0.5) | 2.00 ± 1.00 |" in text
    assert "| none_at_all | 0.03 ± 0.06 | – |" in text
    assert "| +1.00 | +3.97 |" in text
    lines = comma_separated(FOUND, PRINTED, (0, 1, 2)).splitlines()
    assert lines[1] == "ours,here,0,5.0,9.0,0.5"
    assert len(lines) == 1 + 5 * 3
    assert r"none\_at\_all & 0.03 $\pm$ 0.06 & --" in latex(FOUND, PRINTED)
    assert r"\quad paper & 9 $\pm$ 0.5" in latex(FOUND, PRINTED)


def test_an_earlier_version_of_a_paper_is_told_where_it_differs():
    later = paper_table("pfedsv-table1")
    rows = {row: {"MNIST, 10 clients": [1.0]} for row in later.rows}
    found = Measured(("MNIST, 10 clients",), rows)
    text = earlier_figures(found, later, paper_table("pfedsv-table1-arxiv"))
    assert "| FedAvg | 69.74 ± 1.68 |" in text
    assert "| FedProx | 75.12 ± 0.73 |" in text
    assert "Separate" not in text
    assert "IFCA" not in text
    assert earlier_figures(found, later, later) == ""


def test_a_column_that_was_made_once_has_the_first_seed():
    found = Measured(("many", "once"), {"ours": {"many": [5.0, 7.0], "once": [1.0]}})
    lines = comma_separated(found, None, (100, 101), {"once"}).splitlines()
    assert lines[1:] == ["ours,many,100,5.0,,", "ours,many,101,7.0,,", "ours,once,100,1.0,,"]
    assert comma_separated(found, None, (100, 101)).splitlines()[3] == "ours,once,,1.0,,"


def test_influence_of_similar_domains_is_compared_with_that_of_others_on_them():
    domains = ["mnist", "svhn", "usps", "synth-digits"]
    influence = np.array(
        [[0.4, 0.2, 0.2, 0.2], [0.1, 0.5, 0.1, 0.3], [0.9, 0.0, 0.1, 0.0], [0.2, 0.1, 0.1, 0.6]]
    )
    # SVHN has 0.3 from SynthDigits, which has 0.1 from SVHN; others 0.1, 0.1 and 0.2, 0.1.
    assert influence_of_two(domains, influence) == pytest.approx((0.2, 0.125))
