"""Verdicts by intervals, orders by Spearman, tables as people read them."""

from __future__ import annotations

import numpy as np
import pytest

from learners.comparisons.paired import Difference
from learners.reproduction.claims import Claim, above, best, beyond, exact, near
from learners.reproduction.experiments.fedc2i import influence_of_two
from learners.reproduction.measured import Measured, order_agreement
from learners.reproduction.printed import PaperTable, Printed, paper_table
from learners.reproduction.summary import summary_page
from learners.reproduction.tables import comma_separated, earlier_figures, latex, markdown

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
    assert claim.text.endswith("; decided by theirs")
    assert claim.paper == 1.0
    assert claim.ours.mean == pytest.approx((4.0 + 3.9 + 4.0) / 3)
    assert claim.verdict == "holds"
    assert best(FOUND, "theirs", "here").verdict == "does not hold"
    assert above(FOUND, "ours", "theirs", "there").verdict == "cannot be told"
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
    assert unsure.text.endswith("decided by low and unsure")
    # Whoever is surely above decides, even beside one with a higher mean but less certainty.
    for rival in ("surely above", "surely far above"):
        claim = best(found, "ours", "c", among=("low and unsure", rival))
        assert claim.verdict == "does not hold"
        assert claim.text.endswith(f"decided by {rival}")
    assert best(found, "ours", "c").text.endswith("decided by surely far above")
    once = Measured(("c",), {"ours": {"c": [5.0]}, "a": {"c": [4.0]}, "b": {"c": [6.0]}})
    claim = best(once, "ours", "c")
    assert (claim.ours.mean, claim.verdict) == (-1.0, "cannot be told")
    assert claim.text.endswith("decided by b")
    assert best(once, "ours", "no such column").ours is None


def test_what_no_paper_claims_is_told_apart():
    claims = [above(FOUND, "ours", "theirs", "here"), exact("mine", 1.0, added=True)]
    assert [claim.document()["added"] for claim in claims] == [False, True]
    papers, _, added = markdown(FOUND, None, claims).partition("| asked beside the paper |")
    assert "ours is above theirs" in papers
    assert "mine" in added
    assert "mine" not in papers
    one = {"name": "cffl-x", "scale": "small", "seeds": [0], "order": {},
           "claims": [claim.document() for claim in claims]}  # fmt: skip
    page = summary_page([one])
    assert "1 experiments, 1 claims: 1 hold, 0 do not, 0 cannot be told." in page
    assert "mine" in page.partition("What no paper claims")[2]


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
