"""ε, noise and clipping; what leaves a client in a private run, and what is refused."""

import itertools
import json
import math
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from opacus.accountants import PRVAccountant, RDPAccountant
from scipy.stats import norm

from coalitions.errors import CoalitionError, InvalidInputError, NoSolutionError
from learners import resume, run
from learners.algorithm import ALGORITHMS, Algorithm, build_algorithm
from learners.client.client import Client, answer
from learners.client.tasks import deploy, describe, train
from learners.client.training import fit
from learners.data.clients import federated_data
from learners.privacy.accountant import (
    ORDERS,
    Usage,
    _losses,
    _moments,
    ceiling,
    epsilon,
    gaussian_delta,
    noise_for,
    worst_epsilon,
)
from learners.privacy.mechanism import RATE, RELEASES, STEPS, Privacy, clipped, privacy_of
from learners.privacy.per_sample import private_gradient
from learners.settings.config import RunConfig
from learners.settings.participation import present_in, rounds_of
from learners.task import TASKS, Reveals
from tests.learners import tiny, toy

SMALL = {
    "clients": 3,
    "rounds": 3,
    "train_size": 30,
    "workers": 1,
    "validation_share": 0.3,
    "local_epochs": 1,
}
PRIVATE = {"noise": 0.5, "clip": 1.0}


# ε


@pytest.mark.parametrize(
    ("noise", "rate", "steps"), [(1.0, 0.01, 1000), (2.0, 0.1, 500), (0.8, 0.05, 200)]
)
def test_epsilon_is_the_smaller_figure_of_two_accountants(noise, rate, steps):
    by_moments, by_losses = RDPAccountant(), PRVAccountant()
    by_moments.history = by_losses.history = [(noise, rate, steps)]
    usage = Usage(rate, steps)
    moments = by_moments.get_epsilon(1e-5)
    assert ceiling(noise, usage, 1e-5) == pytest.approx(moments, rel=1e-8)
    assert epsilon(noise, usage, 1e-5) < 0.95 * moments
    # Both add their grid's error: theirs is 0.01, ours a five-hundredth of ε.
    theirs = by_losses.get_epsilon(1e-5)
    assert epsilon(noise, usage, 1e-5) == pytest.approx(theirs, abs=0.01 + 0.002 * moments)


@pytest.mark.parametrize(("noise", "steps"), [(1.0, 1), (2.0, 20), (0.5, 3), (50.0, 20)])
def test_at_rate_one_epsilon_solves_the_closed_form_of_the_gaussian_mechanism(noise, steps):
    found = epsilon(noise, Usage(1.0, steps), 1e-5)
    sigma = noise / math.sqrt(steps)  # T looks are one look with less noise
    delta = norm.cdf(1 / (2 * sigma) - found * sigma) - math.exp(found) * norm.cdf(
        -1 / (2 * sigma) - found * sigma
    )
    assert delta == pytest.approx(1e-5, rel=1e-6)


def test_the_closed_form_is_the_divergence_of_two_shifted_normals():
    mu, eps = 1.3, 0.7
    at = np.linspace(-15, 15, 300_001)
    excess = np.maximum(norm.pdf(at, loc=mu) - np.exp(eps) * norm.pdf(at), 0.0)
    assert gaussian_delta(eps, mu) == pytest.approx(float(np.trapezoid(excess, at)), abs=1e-8)


def test_no_look_costs_nothing_and_no_noise_protects_nothing():
    assert epsilon(1.0, Usage(1.0, 0), 1e-5) == 0
    assert epsilon(0.0, Usage(0.1, 1), 1e-5) == math.inf
    assert epsilon(1e6, Usage(1.0, 1), 1e-5) == 0  # δ alone pays for it


@pytest.mark.parametrize("usages", [[Usage(1.0, 20), Usage(1.0, 3)], [Usage(0.1, 50)]])
@pytest.mark.parametrize("target", [0.5, 3.0])
def test_a_target_chooses_the_least_noise_that_keeps_it(usages, target):
    noise = noise_for(target, usages, 1e-5)
    spent = max(epsilon(noise, usage, 1e-5) for usage in usages)
    assert target * (1 - 1e-4) < spent <= target


GOOGLES = [
    # rate, noise, steps, δ, ε by dp-accounting 0.6.0 (privacy loss distributions, connected dots)
    (0.05, 1.0, 200, 1e-5, 4.765920),
    (0.05, 2.0, 200, 1e-5, 1.560605),
    (0.01, 1.0, 1, 1e-5, 0.199450),
    (0.01, 1.0, 100, 1e-3, 0.340753),
    (0.01, 1.0, 10000, 1e-5, 6.187745),
    (0.001, 1.0, 20000, 1e-5, 0.686641),
    (0.3, 0.5, 100, 1e-5, 83.273126),
    (0.5, 5.0, 10, 0.1, 0.063331),
    (0.9, 4.0, 100, 1e-5, 11.641989),
    (0.1, 1.0, 50, 1e-7, 6.790091),
    (0.05, 20.0, 10, 1e-5, 0.021429),
    (0.05, 1.0, 200, 1e-10, 8.100986),  # too small a δ for a grid: moments
]


@pytest.mark.parametrize(("rate", "noise", "steps", "delta", "exact"), GOOGLES)
def test_epsilon_is_never_below_the_exact_one_and_close_to_it(rate, noise, steps, delta, exact):
    ours = epsilon(noise, Usage(rate, steps), delta)
    assert exact - 1e-6 <= ours <= ceiling(noise, Usage(rate, steps), delta)
    assert ours <= exact * (1.08 if delta < 1e-8 else 1.03)


def test_epsilon_in_the_setting_of_table_iv_of_the_pfedsv_paper():
    assert round(epsilon(1.0, Usage(0.05, 200), 1e-5), 2) == 4.78
    assert round(epsilon(2.0, Usage(0.05, 200), 1e-5), 2) == 1.56


@pytest.mark.parametrize("delta", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("usage", [Usage(0.1, 1), Usage(0.5, 3), Usage(1.0, 1)])
def test_epsilon_is_never_negative(usage, delta):
    assert epsilon(10.0, usage, delta) == 0
    assert epsilon(1.0, usage, delta) >= 0


def test_epsilon_grows_with_the_steps_of_a_run_and_falls_with_the_noise():
    spent = [epsilon(1.3, Usage(0.05, k), 1e-5, 300) for k in range(0, 301, 12)]
    assert all(a < b for a, b in itertools.pairwise(spent))
    assert spent[-1] == epsilon(1.3, Usage(0.05, 300), 1e-5)
    noises = np.geomspace(0.6, 6, 8)
    by_noise = [epsilon(float(noise), Usage(0.05, 300), 1e-5) for noise in noises]
    assert all(a > b for a, b in itertools.pairwise(by_noise))


def test_a_target_is_kept_in_every_round_and_chosen_alike_every_time():
    usages = [Usage(0.05, 200), Usage(0.1, 90), Usage(0.2, 40)]
    noise = noise_for(3.0, usages, 1e-5, lambda usage: 10 * math.ceil(2 / usage.rate))
    for usage in usages:
        horizon = 10 * math.ceil(2 / usage.rate)
        for k in range(usage.steps, 0, -5):
            assert epsilon(noise, Usage(usage.rate, k), 1e-5, horizon) <= 3.0
    epsilon.cache_clear()
    assert noise_for(3.0, usages, 1e-5, lambda usage: 10 * math.ceil(2 / usage.rate)) == noise


def test_rounds_share_one_grid_and_the_worst_client_is_found():
    rates = [10 / n for n in range(40, 48)]
    privacy = Privacy("records", 1.1, 1.0, 1e-5, passes=20)
    _losses.cache_clear()
    for t in range(1, 21):
        usages = [Usage(rate, t * math.ceil(1 / rate)) for rate in rates]
        memories = dict(
            enumerate({RELEASES: t, RATE: each.rate, STEPS: each.steps} for each in usages)
        )
        found = privacy.worst(memories)
        if t in (1, 20):
            each = [epsilon(1.1, u, 1e-5, 20 * math.ceil(1 / u.rate)) for u in usages]
            assert found == max(each)
            assert found == worst_epsilon(1.1, usages, 1e-5, lambda u: 20 * math.ceil(1 / u.rate))
    assert _losses.cache_info().misses <= len(rates)


@pytest.mark.parametrize("rounds", [10**6, 10**9, 10**18])
@pytest.mark.parametrize("dp", ["updates", "records"])
def test_absurd_numbers_of_rounds_are_answered_or_refused_at_once(dp, rounds):
    began = time.process_time()
    assert check("fedavg", dp, rounds=rounds).noise == 1.0
    most = check("fedavg", dp, rounds=rounds).worst(
        {0: {RELEASES: rounds, STEPS: rounds, RATE: 0.5}}
    )
    assert most > rounds / 20
    if rounds == 10**18:
        with pytest.raises(InvalidInputError, match="cannot be reached by noise"):
            check("fedavg", dp, rounds=rounds, noise=None, clip=None, epsilon=8.0)
    else:
        noise = check("fedavg", dp, rounds=rounds, noise=None, clip=None, epsilon=8.0).noise
        assert 0.05 < noise / math.sqrt(rounds) < 5
    with pytest.raises(InvalidInputError, match=r"at most 20,000 rounds"):
        check("fedavg", dp, rounds=rounds, noise=None, clip=None, epsilon=8.0, participation=0.5)
    assert time.process_time() - began < 10


@pytest.mark.parametrize("rate", [0.01, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("noise", [3e3, 3e5, 1e8])
def test_rounding_and_lines_between_orders_never_make_a_moment_too_small(rate, noise):
    """For strong noise the moment of order α is α rate² / 2σ², up to terms that only add."""
    assert (_moments(noise, rate) >= rate**2 * np.array(ORDERS) / (2 * noise**2)).all()


# clipping and noise


@given(
    st.integers(0, 2**32 - 1),
    st.floats(1e-3, 1e3),
    st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_clipping_bounds_the_joint_norm_exactly_and_keeps_the_direction(seed, clip, scale):
    stream = torch.Generator().manual_seed(seed)
    before = [scale * torch.randn(n, generator=stream) for n in (3, 500)]
    after = clipped(before, clip)
    joint, was = torch.cat(after).double(), torch.cat(before).double()
    assert float(joint.norm()) <= clip
    if float(was.norm()) <= clip:
        assert torch.equal(joint, was)
    else:
        assert float(joint.norm()) == pytest.approx(clip, rel=1e-5)
        torch.testing.assert_close(joint, was * (joint.norm() / was.norm()), rtol=1e-5, atol=0)


def wide_client(privacy, n_parameters=1_000_000):
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2, n_parameters, bias=False))
    site = tiny.site("fedavg", module=module, n_classes=2)
    site.privacy = privacy
    return site


def test_noise_has_the_stated_deviation_on_a_million_draws():
    site = wide_client(Privacy("updates", 2.0, 0.5, 1e-5), 500_000)
    echo = TASKS["train"]
    model = site.initial

    def unchanged(client, message):
        return {"model": message["model"], "samples": 1}

    task = type(echo)("train", unchanged, echo.reply)
    sent = answer(site, task, 0, 1, {"model": model}, {}).reply["model"]
    noise = (sent - model).double()
    assert len(noise) == 1_000_000
    assert float(noise.std()) == pytest.approx(1.0, rel=3e-3)  # σC
    assert abs(float(noise.mean())) < 4e-3
    other = answer(site, task, 1, 1, {"model": model}, {}).reply["model"]
    assert not torch.equal(other, sent)  # every client has noise of its own


# what leaves a client


def private_site(privacy, algorithm="fedavg", **settings):
    site = tiny.site(algorithm, **settings)
    site.privacy = privacy
    return site


def test_an_update_is_measured_from_the_model_that_was_received():
    site = private_site(Privacy("updates", 0.0, 0.01, 1e-5))
    received = tiny.rows(1, site.initial, 5)[0]
    reply = answer(site, train, 0, 1, {"model": received}, {}).reply
    assert float((reply["model"] - received).norm()) == pytest.approx(0.01, rel=1e-4)
    site.privacy = None
    clean = answer(site, train, 0, 1, {"model": received}, {}).reply["model"]
    cosine = torch.cosine_similarity(clean - received, reply["model"] - received, dim=0)
    assert float(cosine) == pytest.approx(1.0, abs=1e-3)


def test_the_clients_own_model_stays_clean_and_noise_does_not_steer_what_is_sent():
    site, plain = private_site(Privacy("updates", 3.0, 0.5, 1e-5)), private_site(None)
    memory, clean = {}, {}
    public = without = site.initial
    for t in range(1, 4):
        given = answer(site, train, 0, t, {}, memory)
        memory = given.memory
        clean = answer(plain, train, 0, t, {}, clean).memory
        assert torch.equal(memory["model"], clean["model"])
        # The step that is sent is the one from the clean twin of what was published last …
        step = clipped([clean["model"] - without], 0.5)[0]
        without = without + step
        torch.testing.assert_close(memory["published model, without noise"], without)
        # … and noise is all that is added to it.
        noise = given.reply["model"] - public - step
        assert 0.2 < float(noise.norm()) / (1.5 * math.sqrt(len(noise))) < 3
        public = memory["published model"]
        assert torch.equal(public, given.reply["model"])
    assert memory[RELEASES] == 3


def test_each_rounds_step_from_the_clean_reference_is_at_most_the_clip():
    site = private_site(Privacy("updates", 3.0, 0.05, 1e-5))
    memory, clean = {}, site.initial
    for t in range(1, 5):
        memory = answer(site, train, 0, t, {}, memory).memory
        step = memory["published model, without noise"] - clean
        assert float(step.norm()) <= 0.05 * (1 + 1e-5)
        clean = memory["published model, without noise"]
    # What was clipped away is not lost: the clean reference follows the model.
    gap = (memory["model"] - clean).norm()
    assert float(gap) < float((memory["model"] - site.initial).norm())


def test_losses_do_not_leave_and_statistics_are_refused():
    site = private_site(Privacy("updates", 1.0, 1.0, 1e-5))
    assert set(answer(site, train, 0, 1, {"model": site.initial}, {}).reply) == {"model", "samples"}
    with pytest.raises(InvalidInputError, match=r"'gradients' without noise"):
        answer(site, TASKS["gradient"], 0, 1, {"models": site.initial[None]}, {})
    # How a run is watched is not sent to anyone.
    assert "labels" in answer(site, describe, 0, 1, {}, {}).reply
    watched = answer(site, deploy, 0, 1, {"model": site.initial}, {})
    assert torch.equal(watched.reply["model"], site.initial)
    assert watched.memory is None


@pytest.mark.parametrize("options", [{}, {"shared_extractor": True}])
def test_what_pfedsv_tells_the_server_does_not_depend_on_the_clean_model(options):
    """Two clean models that published the same: told alike, though they combine differently."""
    site = private_site(
        Privacy("updates", 1.0, 1.0, 1e-5),
        "pfedsv",
        module=tiny.two_layers(),
        options={"utility": "loss"} | options,
    )
    rows = tiny.rows(4, site.initial)
    message = {"models": rows[:2]}
    if options:
        features, classifier = site.workspace.layout.parts("head")
        message = {"extractor": rows[0, features], "classifiers": rows[:2, classifier]}
    task, known = TASKS["pfedsv-collaborate"], {"published model": rows[2]}
    one = answer(site, task, 0, 1, message, known | {"model": rows[2]})
    other = answer(site, task, 0, 1, message, known | {"model": rows[3]})
    np.testing.assert_allclose(one.reply["values"], other.reply["values"], atol=1e-12)
    assert not torch.equal(one.memory["model"], other.memory["model"])


def test_what_fedfomo_tells_the_server_does_not_depend_on_the_clean_models():
    site = private_site(Privacy("updates", 1.0, 1.0, 1e-5), "fedfomo")
    rows = tiny.rows(6, site.initial)
    task, known = TASKS["fedfomo-weigh"], {"published model": rows[2]}
    replies = [
        answer(
            site,
            task,
            0,
            1,
            {"models": rows[:2]},
            known | {"model": rows[a], "trained": rows[b]},
        ).reply["weights"]
        for a, b in ((2, 3), (4, 5))
    ]
    np.testing.assert_array_equal(*replies)


# refusals


def check(algorithm, dp="updates", has_batch_norm=False, options=None, **more):
    config = RunConfig(
        algorithm=algorithm, options=options or {}, dp=dp, **({"noise": 1.0, "clip": 1.0} | more)
    )
    method = build_algorithm(algorithm, config.options)
    return privacy_of(config, method, [20] * config.clients, has_batch_norm=has_batch_norm)


BARE = {
    "cffl": "gains",
    "fedc2i": "influence",
    "fedproto": "classes",
    "ifca": "cluster",
    "domain": "labels",
}
OWN_TRAINING = {"apfl", "fedem", "fedrod", "per-fedavg", "pfedme"}


@pytest.mark.parametrize("dp", ["updates", "records"])
@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_which_methods_can_be_private(algorithm, dp):
    if algorithm in BARE:
        with pytest.raises(InvalidInputError, match=f"'{BARE[algorithm]}' without noise"):
            check(algorithm, dp)
    elif dp == "records" and algorithm in OWN_TRAINING:
        with pytest.raises(InvalidInputError, match="trains in a way of its own"):
            check(algorithm, dp)
    else:
        about = check(algorithm, dp).covers
        assert ("validation" in about) == (algorithm in {"pfedsv", "fedfomo"})


def test_options_decide_too():
    with pytest.raises(InvalidInputError, match="'gradients' without noise"):
        check("cffl", options={"synergy": "cos"})
    with pytest.raises(InvalidInputError, match="'labels' without noise"):
        check("pfedsv", options={"told": True})
    with pytest.raises(InvalidInputError, match="pairwise"):
        check("pfedsv", options={"collaboration": "pairwise"})
    assert check("pfedsv", "records", options={"collaboration": "pairwise"})


@pytest.mark.parametrize("dp", ["updates", "records"])
def test_batch_norm_is_refused(dp):
    with pytest.raises(InvalidInputError, match="batch norm"):
        check("fedavg", dp, has_batch_norm=True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"noise": 1.0}, "without clip protects nothing"),
        ({"noise": 1.0, "clip": 1.0, "epsilon": 2.0}, "give one"),
        ({"dp": "records"}, "needs noise and clip"),
        ({"noise": -1.0, "clip": 1.0}, "0 or more"),
        ({"clip": 0.0}, "positive"),
        ({"epsilon": 0.0}, "positive"),
        ({"epsilon": 1.0, "delta": 0.0}, "above 0 and below 1"),
    ],
)
def test_settings_that_make_no_sense(settings, words):
    with pytest.raises(InvalidInputError, match=words):
        RunConfig(**settings)


def test_a_method_that_asks_for_more_than_it_declares_is_stopped(monkeypatch):
    monkeypatch.setattr(ALGORITHMS["cffl"], "traits", Algorithm.traits)
    with pytest.raises(InvalidInputError, match="its `traits` do not name"):
        run(SMALL | PRIVATE | {"algorithm": "cffl"})


def test_every_method_declares_what_it_asks_for(monkeypatch):
    for name in ALGORITHMS:
        asked = set()
        federation = tiny.federation(name, module=tiny.two_layers(), rounds=1)
        ask = federation.ask

        def heard(task, messages, *, measuring=False, ask=ask, asked=asked, here=federation):
            if here._method_at_work:
                asked.add(task.name)
            return ask(task, messages, measuring=measuring)

        monkeypatch.setattr(federation, "ask", heard)
        list(federation.rounds())
        assert asked == set(federation.algorithm.traits.asks), name
        for task in asked:
            assert TASKS[task].reply, name


def test_more_than_the_target_is_never_reported_as_kept():
    privacy = Privacy("updates", 1.0, 1.0, 1e-5, target=5.0)
    assert privacy.worst({0: {RELEASES: 1}, 1: {}}) == pytest.approx(4.3772, abs=1e-3)
    with pytest.raises(CoalitionError, match="more than the 5"):
        privacy.worst({0: {RELEASES: 2}})


# runs


def test_without_noise_and_clipping_nothing_changes():
    plain, zero = run(SMALL), run(SMALL | {"noise": 0.0})
    assert zero.epsilon is None
    assert zero.privacy is None
    assert plain.to_dict() | {"seconds": 0} == zero.to_dict() | {"seconds": 0}
    for c in range(3):
        for one, other in zip(plain.model(c).parameters(), zero.model(c).parameters(), strict=True):
            assert torch.equal(one, other)
    assert [line["train_loss"] for line in plain.history] == [
        line["train_loss"] for line in zero.history
    ]


def test_clipping_that_never_clips_changes_nothing_but_says_so():
    plain, wide = run(SMALL), run(SMALL | {"clip": 1e6})
    assert wide.epsilon is None
    assert wide.privacy["covers"] == "nothing: there is no noise"
    assert wide.per_client_test_accuracy == plain.per_client_test_accuracy


@pytest.mark.parametrize("algorithm", ["fedavg", "pfedsv"])
def test_epsilon_of_every_round_is_that_of_the_worst_clients_uploads(algorithm):
    config = SMALL | PRIVATE | {"participation": 0.7, "rounds": 4, "algorithm": algorithm}
    result = run(config)
    uploads = np.zeros(3, int)
    for line in result.history:
        uploads[line["participants"]] += 1
        expected = epsilon(0.5, Usage(1.0, int(uploads.max())), 1e-5)
        assert line["epsilon"] == pytest.approx(expected)
        assert line["train_loss"] is None
    assert result.to_dict()["epsilon"] == result.history[-1]["epsilon"]
    assert rounds_of(RunConfig.of(config)) == uploads.tolist()


@pytest.mark.parametrize(("dp", "participation"), [("updates", 1.0), ("records", 0.5)])
def test_a_target_is_reached_at_the_end_of_the_run(dp, participation):
    settings = {"epsilon": 4.0, "dp": dp, "participation": participation, "algorithm": "fedrep"}
    result = run(SMALL | settings | {"options": {"head_epochs": 2}})
    assert 4.0 * (1 - 1e-3) < result.epsilon <= 4.0
    assert result.privacy["noise"] > 0


def test_equal_noise_rate_and_steps_give_fedavg_and_pfedsv_the_same_epsilon():
    settings = SMALL | {"noise": 1.0, "clip": 1.0, "dp": "records"}
    one, other = (run(settings | {"algorithm": a}).epsilon for a in ("fedavg", "pfedsv"))
    told = federated_data(
        "digits", clients=3, partition="pathological:2", seed=0, train_size=30, validation_share=0.3
    )
    sizes = {len(each.train) for each in told.clients}
    worst = max(epsilon(1.0, Usage(10 / n, 3 * math.ceil(n / 10)), 1e-5) for n in sizes)
    assert one == other == pytest.approx(worst)


def test_training_that_stays_at_home_costs_nothing():
    assert run(SMALL | PRIVATE | {"algorithm": "local"}).epsilon == 0
    settings = SMALL | {"noise": 1.0, "clip": 1.0, "dp": "records", "rounds": 1}
    ditto, fedavg = (run(settings | {"algorithm": a}).epsilon for a in ("ditto", "fedavg"))
    assert ditto == fedavg


@pytest.mark.parametrize("settings", [PRIVATE, {"epsilon": 6.0, "dp": "records"}])
def test_a_private_run_resumes_and_repeats_with_the_same_numbers(tmp_path, settings):
    config = SMALL | settings | {"algorithm": "pfedsv", "participation": 0.7}
    whole = run(config, tmp_path / "whole")

    def stop(round):
        if round.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path / "parts", on_round=stop)
    parts = resume(tmp_path / "parts")
    again = run(RunConfig.read(tmp_path / "whole" / "config.toml"))
    workers = run(config | {"workers": 2})
    finished = resume(tmp_path / "whole")
    for other in (parts, again, workers, finished):
        assert other.per_client_test_accuracy == whole.per_client_test_accuracy
        assert other.epsilon == whole.epsilon
        assert other.privacy == whole.privacy
    text = (tmp_path / "whole" / "result.json").read_text()
    assert json.loads(text)["privacy"]["covers"].endswith("depend on")


def test_who_is_present_is_known_in_advance():
    config = RunConfig(clients=7, participation=0.4, rounds=3, seed=4)
    federation = toy.federation(RunConfig(clients=7, participation=0.4, rounds=3, seed=4))
    seen = [round.metrics["participants"] for round in federation.rounds()]
    assert seen == [list(present_in(config, t)) for t in (1, 2, 3)]


# DP-SGD


def test_a_private_gradient_is_the_sum_of_clipped_gradients_of_single_images():
    client = toy.client()
    client.workspace.load(client.own_model)
    images, labels = client.data.train.take(torch.arange(7))
    single = []
    for at in range(7):
        value = torch.nn.functional.cross_entropy(
            client.workspace.module(images[at : at + 1]), labels[at : at + 1]
        )
        single.append(client.workspace.backward(value).clone())
    rows = torch.stack(single)
    clip = float(rows.norm(dim=1).median())
    scales = (clip / rows.norm(dim=1)).clamp(max=1.0)
    expected = (scales[:, None] * rows).sum(0) / 5.0
    found, losses = private_gradient(
        client.workspace, images, labels, expected=5.0, clip=clip, noise=0.0,
        stream=torch.Generator(),
    )  # fmt: skip
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    assert losses > 0


def test_an_empty_batch_is_noise_of_the_stated_deviation():
    client = toy.client()
    images, labels = client.data.train.take(torch.arange(0))
    draws = torch.stack(
        [
            private_gradient(
                client.workspace, images, labels, expected=4.0, clip=0.5, noise=2.0,
                stream=torch.Generator().manual_seed(seed),
            )[0]
            for seed in range(400)
        ]
    )  # fmt: skip
    assert float(draws.std()) == pytest.approx(0.25, rel=0.02)  # σC/B


def record_client(noise=0.0, clip=1e6, **settings):
    config = RunConfig(clients=1, local_epochs=2, batch_size=6, lr=0.1, **settings)
    client = toy.client(config)
    client.site.privacy = Privacy("records", noise, clip, 1e-5)
    return client


def test_record_mode_samples_each_image_with_the_same_probability_and_counts_its_steps(monkeypatch):
    sizes = []

    def counted(workspace, images, labels, **more):
        sizes.append(len(labels))
        return private_gradient(workspace, images, labels, **more)

    monkeypatch.setattr("learners.client.training.private_gradient", counted)
    client = record_client()
    fit(client, client.own_model, steps=300)
    assert client.memory[STEPS] == 300
    assert np.mean(sizes) == pytest.approx(6, abs=0.5)
    assert np.var(sizes) == pytest.approx(20 * 0.3 * 0.7, rel=0.25)  # binomial, not a permutation
    fit(client, client.own_model)
    assert client.memory[STEPS] == 300 + 2 * 4


def test_noise_is_never_used_twice():
    client = record_client(noise=1.0, clip=1.0)
    one, other = (fit(client, client.own_model).model for _ in range(2))
    assert not torch.equal(one, other)


def test_what_stays_or_is_watched_trains_plainly():
    client = record_client(noise=5.0, clip=1.0)
    plain = fit(toy.client(client.config), client.own_model).model
    assert torch.equal(fit(client, client.own_model, leaves=False).model, plain)
    watched = Client(client.site, 0, 1, {}, True)
    assert torch.equal(fit(watched, client.own_model).model, plain)
    assert STEPS not in client.memory


def test_record_mode_trains_only_what_it_is_told_to():
    client = record_client(noise=1.0, clip=1.0)
    names = {"5.weight", "5.bias"} & set(client.workspace.layout.shapes) or set(
        list(client.workspace.layout.shapes)[-2:]
    )
    after = fit(client, client.own_model, only=names).model
    kept = client.workspace.layout.columns_of(client.workspace.layout.shapes.keys() - names)
    assert torch.equal(after[kept], client.own_model[kept])
    assert not torch.equal(after, client.own_model)


def test_record_mode_refuses_losses_of_whole_batches():
    client = record_client()
    with pytest.raises(InvalidInputError, match="single training samples"):
        fit(client, client.own_model, loss=lambda module, images, labels: module(images).mean())


def test_every_reply_says_what_it_reveals():
    """A model, what is said of validation data, and sizes: nothing else leaves a private run."""
    open_entries = {Reveals.MODEL, Reveals.HELD_OUT, Reveals.SIZE, Reveals.PROGRESS}
    for name in set(ALGORITHMS) - set(BARE):
        for task in build_algorithm(name, {}).traits.asks:
            assert set(TASKS[task].reply.values()) <= open_entries


@pytest.mark.parametrize("workers", [1, 2])
def test_an_answer_that_is_not_finite_ends_a_private_run(workers):
    settings = {"clients": 2, "rounds": 2, "lr": 1e30, "workers": workers, "local_epochs": 1}
    with pytest.raises(NoSolutionError, match="in a private run no answer can be dropped"):
        run({**settings, "noise": 1.0, "clip": 1.0})
