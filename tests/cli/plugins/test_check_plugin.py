"""A plug-in that breaks a promise is told which one, and a sound one passes."""

from __future__ import annotations

import json

import jsonschema
import pytest

from tests.cli.test_json import SCHEMAS
from tests.cli.typed import check_refused, in_a_process

SOLVER = """
from dataclasses import dataclass
import numpy as np
from solvers import SOLVERS, Answer, Solver

@SOLVERS.register("alone")
@dataclass(frozen=True)
class Alone(Solver):
    "Everybody alone."
    def search(self, graph, *, limits, warm_start):
        return Answer(np.arange(graph.n_players), {bound})
"""

ESTIMATOR = """
import numpy as np
from coalitions import ESTIMATORS, Estimator
from coalitions.values.estimator import Sampled

@ESTIMATORS.register("equal")
class Equal(Estimator):
    "The same for all."
    unbiased = True
    axioms = frozenset({"efficiency", "null player"})
    stderr_means = "nothing, it is zero"

    def minimum_budget(self, n_players):
        return 2

    def estimate(self, game, *, seed):
        empty, grand = game.ends
        n = game.n_players
        return Sampled(np.full(n, (grand - empty) / n) + np.random.random() * 1e-12, np.zeros(n))
"""


def faults(folder, text):
    (folder / "mine.py").write_text(text)
    result = in_a_process("check-plugin", "mine", "--json", cwd=folder)
    found = json.loads(result.stdout)
    jsonschema.validate(found, SCHEMAS["$defs"]["check-plugin"])
    assert result.returncode == (0 if found["ok"] else 1)
    return {each["check"]: each["fault"] for each in found["checks"] if each["fault"]}


def test_a_solver_with_a_false_bound_is_told_so(tmp_path):
    found = faults(tmp_path, SOLVER.format(bound="0.0"))  # its search takes no sizes
    assert "there is a structure worth" in found["value, optimum and bound are in order"]


def test_an_estimator_that_is_biased_and_unsteady_is_told_so(tmp_path):
    found = faults(tmp_path, ESTIMATOR)
    assert "take all chance from the seed" in found["the same seed gives the same values"]
    assert "null player" in found["the claimed axioms hold"]
    assert "the mean of 200 estimates" in found["unbiased if it says so"]
    assert set(found) >= {"more evaluations bring it closer"}


PARTS = """
import numpy as np
from coalitions import DATA_MODELS, INDICES, SYNERGIES, Index, SynergyGraph
from coalitions.values.interaction_indices import fixed

@INDICES.register("third")
class Third(Index):
    "Everybody else joins with a chance of a third."
    efficient = True
    def measure(self, size, n_players):
        return fixed(1 / 3)

@SYNERGIES.register("chance")
def chance(game, *, budget, rng):
    "Synergies that nobody asked the game for."
    upper = np.triu(np.random.random((game.n_players, game.n_players)), 1)
    return SynergyGraph(upper + upper.T)

class Mean:
    def fit(self, X, y):
        self.mean = np.mean(y)
    def predict(self, X):
        return np.full(len(X), self.mean)

@DATA_MODELS.register("mean")
def mean(classes):
    "The mean, of classes also."
    return Mean()
"""


def test_an_index_a_synergy_and_a_data_model_are_checked(tmp_path):
    found = faults(tmp_path, PARTS)
    assert set(found) == {
        "efficient if it says so",
        "the same seed gives the same graph",
        "predicts classes it has seen",
    }


RUN_PARTS = """
import torch
from learners.measures.losses import LOSSES, Criterion
from learners.measures.metrics import METRICS, Metric
from learners.server.aggregation import AGGREGATIONS

@LOSSES.register("none")
class Nothing(Criterion):
    "A loss that teaches nothing."
    kinds = ("regression",)
    name = "none"
    def each(self, outputs, targets):
        return 0 * outputs.sum(1)

def wrong(given):
    return float((given.chosen != given.truth).mean())

METRICS.register("wrong")(Metric("wrong", ("classification",), wrong))

@AGGREGATIONS.register("first")
def first(rows, weights):
    "The first client's model."
    return rows[0]
"""


def test_a_loss_a_metric_and_an_aggregation_are_checked(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    found = faults(tmp_path, RUN_PARTS)
    assert set(found) == {
        "regression: one finite number, with a gradient",
        "classification: right answers are best",
        "the order of clients changes nothing",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "registers nothing"),
        ("1/0", "cannot be imported (ZeroDivisionError"),
    ],
)
def test_a_module_that_has_nothing_to_check_is_refused(tmp_path, text, said):
    (tmp_path / "mine.py").write_text(text)
    result = in_a_process("check-plugin", "mine", cwd=tmp_path)
    check_refused(result, said)


def test_a_file_instead_of_a_module_is_told_what_to_type(tmp_path):
    (tmp_path / "mine.py").write_text("")
    result = in_a_process("check-plugin", "./mine.py", cwd=tmp_path)
    assert result.returncode == 2
    assert "name the module, not its file: mine" in result.stderr


def test_an_option_that_is_called_as_a_setting_is_refused(tmp_path):
    """`--sweep rounds=1,2` would mean two things."""
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from learners import ALGORITHMS, Algorithm, option\n"
        '@ALGORITHMS.register("hasty")\n'
        "@dataclass(frozen=True)\n"
        "class Hasty(Algorithm):\n"
        '    rounds: int = option(1, changes="models")\n'
    )
    result = in_a_process("check-plugin", "mine", cwd=tmp_path)
    check_refused(result, "'rounds'")
