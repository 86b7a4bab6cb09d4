"""What a run scored, and which way is better."""

import subprocess
import sys

import pytest

from learners.measures.metrics import METRICS, lower_is_better
from learners.measures.scores import score_of


@pytest.mark.parametrize("name", METRICS.names())
def test_which_way_is_better_is_said_by_the_metric_even_of_a_run_that_does_not_say(name):
    line = {"metrics": {name: {"mean": 2.0, "per_client": [1.0, 3.0]}}}
    score = score_of(line, name)
    assert score.lower_is_better == lower_is_better(name) == (not METRICS[name].higher_is_better)
    assert score.worst == (1.0 if METRICS[name].higher_is_better else 3.0)


def test_a_metric_of_the_user_is_better_the_higher_unless_the_run_says_otherwise():
    told = {"mean": 2.0, "per_client": [1.0, 3.0]}
    assert not score_of({"metrics": {"mine": told}}, "mine").lower_is_better
    told["higher_is_better"] = False
    assert score_of({"metrics": {"mine": told}}, "mine").gain == -2.0


def test_metrics_are_known_without_torch():
    code = (
        "import sys; from learners.measures.scores import score_of;"
        "from learners.measures.metrics import METRICS; assert len(METRICS) >= 10;"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
