import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coalitions.errors import InvalidInputError, UnknownNameError
from learners.rows.parameters import weighted_mean
from learners.runs.run import run
from learners.server.aggregation import AGGREGATIONS, aggregation
from tests.learners import literal

ROBUST = ["median", "trimmed-mean", "krum", "multi-krum", "geometric-median"]


def rows(n, seed, columns=5):
    stream = torch.Generator().manual_seed(seed)
    return torch.randn(n, columns, generator=stream), torch.rand(n, generator=stream) + 0.1


def test_median_by_hand():
    given = torch.tensor([[1.0, 9.0], [5.0, 2.0], [3.0, 4.0], [100.0, 3.0]])
    assert aggregation("median")(given[:3], torch.ones(3)).tolist() == [3.0, 4.0]
    assert aggregation("median")(given, torch.ones(4)).tolist() == [4.0, 3.5]


@given(st.integers(1, 9), st.integers(0, 99))
def test_median_is_numpys(n, seed):
    models, weights = rows(n, seed)
    expected = np.median(models.numpy(), axis=0)
    np.testing.assert_allclose(aggregation("median")(models, weights), expected, rtol=1e-6)


def test_trimmed_mean_by_hand():
    given = torch.tensor([[1.0], [2.0], [3.0], [4.0], [1000.0]])
    assert aggregation("trimmed-mean:0.2")(given, torch.ones(5)).tolist() == [3.0]
    weights = torch.tensor([9.0, 1.0, 1.0, 2.0, 9.0])
    assert aggregation("trimmed-mean:0.2")(given, weights).tolist() == [(2 + 3 + 8) / 4]


@given(st.integers(1, 9), st.integers(0, 99))
def test_trimming_nothing_and_keeping_everyone_are_the_mean(n, seed):
    models, weights = rows(n, seed)
    mean = weighted_mean(models, weights)
    assert torch.equal(aggregation("trimmed-mean:0")(models, weights), mean)
    assert torch.equal(aggregation("multi-krum:0")(models, weights), mean)
    assert torch.equal(aggregation("mean")(models, weights), mean)


def test_krum_by_hand():
    # n = 5, f = 1: two nearest neighbours. Scores: 0.04+0.01, 0.01+0.01, 0.01+0.04, then far.
    given = torch.tensor([[0.0], [0.1], [0.2], [7.0], [9.0]])
    assert aggregation("krum")(given, torch.ones(5)).item() == pytest.approx(0.1)
    # The four lowest scores leave 9 out: 7 is as close to 0.2 as it gets.
    kept = aggregation("multi-krum")(given, torch.ones(5)).item()
    assert kept == pytest.approx((0 + 0.1 + 0.2 + 7) / 4)


@given(st.integers(5, 12), st.integers(0, 99))
def test_krum_is_its_definition(n, seed):
    models, weights = rows(n, seed)
    liars = int(0.2 * n)
    scores = []
    for i in range(n):
        apart = sorted(float((models[i] - models[j]).square().sum()) for j in range(n) if j != i)
        scores.append(sum(apart[: n - liars - 2]))
    chosen = aggregation("krum")(models, weights)
    assert torch.equal(chosen, models[int(np.argmin(scores))])


def test_geometric_median_is_the_fermat_point_of_a_triangle():
    # The sides of an equilateral triangle are seen from its centre under 120 degrees each.
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 3**0.5 / 2]])
    found = aggregation("geometric-median")(corners, torch.ones(3))
    torch.testing.assert_close(found, torch.tensor([0.5, 3**0.5 / 6]), rtol=0, atol=1e-5)


def test_geometric_median_of_points_on_a_line_is_their_median_whatever_the_far_one_does():
    for far in (10.0, 1e6):
        line = torch.tensor([[0.0], [1.0], [2.0], [3.0], [far]])
        found = aggregation("geometric-median")(line, torch.ones(5))
        assert found.item() == pytest.approx(2.0, abs=0.02)


def test_geometric_median_does_not_believe_the_sizes_that_clients_claim():
    models, _ = rows(10, 3)
    claimed = torch.ones(10)
    claimed[0] = 1e12
    rule = aggregation("geometric-median")
    assert torch.equal(rule(models, claimed), rule(models, torch.ones(10)))


@given(st.integers(2, 9), st.integers(0, 99))
def test_geometric_median_has_no_direction_downhill(n, seed):
    models, weights = rows(n, seed)
    at = aggregation("geometric-median")(models, weights).double()

    def cost(point):
        return float((models.double() - point).norm(dim=1).sum())

    for direction in torch.eye(5, dtype=torch.float64):
        for step in (0.02, -0.02):
            assert cost(at + step * direction) >= cost(at) - 1e-6


@pytest.mark.parametrize("name", ROBUST)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_equal_models_stay_whatever_their_number(name, n):
    model = torch.randn(7, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(aggregation(name)(model.repeat(n, 1), torch.ones(n)), model)


@pytest.mark.parametrize("name", ROBUST)
def test_one_liar_of_six_does_little_where_the_mean_is_lost(name):
    models, _ = rows(6, 4, columns=30)
    honest = models[:5].mean(0)
    models[5] = 1e4
    apart = aggregation(name)(models, torch.ones(6)) - honest
    assert float(apart.norm()) < 10
    assert float((models.mean(0) - honest).norm()) > 1000


@pytest.mark.parametrize("name", ROBUST)
def test_any_averaging_method_takes_it(name):
    for algorithm in ("fedavg", "fedrep", "apfl"):
        _, robust = literal.play(
            algorithm, sizes=(20,) * 5, rounds=1, local_epochs=1, aggregation=name
        )
        _, mean = literal.play(algorithm, sizes=(20,) * 5, rounds=1, local_epochs=1)
        key = "body" if algorithm == "fedrep" else "model"
        assert not torch.equal(robust[-1].state[key], mean[-1].state[key])


def test_what_makes_no_sense_is_refused_in_a_sentence():
    with pytest.raises(UnknownNameError, match="did you mean 'median'"):
        aggregation("medain")
    for text in ("krum:0.5", "krum:x", "trimmed-mean:-1", "krum:nan"):
        with pytest.raises(InvalidInputError, match=r"below 0\.5"):
            aggregation(text)
    with pytest.raises(InvalidInputError, match="takes no number"):
        aggregation("median:0.1")
    with pytest.raises(InvalidInputError, match="local does not average"):
        run({"algorithm": "local", "aggregation": "median"})


def test_the_names_are_those_of_the_command_line():
    assert AGGREGATIONS.names() == sorted(["mean", *ROBUST])


def test_a_share_that_floats_cannot_hold_still_cuts_whole_clients():
    given = torch.arange(100.0)[:, None]
    # 0.29 · 100 is 28.999… as a float; 29 from either end leave 29 … 70.
    assert aggregation("trimmed-mean:0.29")(given, torch.ones(100)).tolist() == [49.5]
    given[:29] = -1e6
    assert aggregation("trimmed-mean:0.29")(given, torch.ones(100)).tolist() == [49.5]


@pytest.mark.parametrize(
    ("text", "n", "sentence"),
    [
        ("multi-krum:0.4", 10, r"bears 4 liars only among 11 clients .* from 0\.1 to 0\.3"),
        ("krum:0.4", 10, "for this one, 11 clients would do"),
        ("trimmed-mean", 4, r"less than one, .* a share of 0\.25; for this one, 5 clients"),
        ("multi-krum", 4, "less than one, .* it needs 5 clients a round, or choose mean"),
        ("krum:0.25", 4, "bears one liar only among 5 clients or more"),
        ("krum:0.05", 10, r"less than one, .* from 0\.1 to 0\.3; for this one, 20 clients"),
        ("median", 2, "bears one liar only among 3 clients or more"),
        ("geometric-median", 1, "it needs 3 clients a round, or choose mean"),
    ],
)
def test_a_rule_that_cannot_bear_what_is_asked_is_refused_and_says_what_would_do(text, n, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        aggregation(text).check(n)


def test_a_rule_that_can_is_not_refused():
    fits = {
        "mean": 1, "trimmed-mean:0": 1, "multi-krum:0": 1, "median": 3, "geometric-median": 3,
        "trimmed-mean": 5, "trimmed-mean:0.25": 4, "trimmed-mean:0.34": 3, "krum": 5,
        "multi-krum:0.4": 11, "multi-krum:0.3": 10,
    }  # fmt: skip
    for text, n in fits.items():
        aggregation(text).check(n)


def test_it_is_refused_before_the_run_with_those_who_take_part(tmp_path):
    with pytest.raises(InvalidInputError, match=r"0\.2 of the 3 clients of a round"):
        run({"aggregation": "krum", "participation": 0.3}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["trimmed-mean", "krum", "multi-krum"])
def test_among_few_one_is_still_taken_to_lie(name):
    models = torch.zeros(4, 3)
    models[3] = 1e6
    combined = aggregation(name)(models, torch.ones(4))
    assert float(combined.norm()) == 0  # the mean, which it was, is 250 000


def test_a_round_says_where_there_are_too_few_for_the_rule(monkeypatch):
    from tests.reliability.hostile import absent

    absent(monkeypatch, (3, 4))
    _, rounds = literal.play("fedavg", sizes=(20,) * 5, rounds=2, aggregation="krum")
    assert [round.metrics["too_few_to_protect"] for round in rounds] == [1, 1]
    monkeypatch.undo()
    _, rounds = literal.play("fedavg", sizes=(20,) * 5, rounds=2, aggregation="krum")
    assert all("too_few_to_protect" not in round.metrics for round in rounds)
