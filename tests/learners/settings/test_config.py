import tomllib
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalitions.errors import InvalidInputError
from learners.algorithm import ALGORITHMS, Algorithm, build_algorithm
from learners.settings.config import RunConfig, differing_settings, digest_of_all_settings
from learners.settings.conversion import from_values
from learners.settings.options import option, options_of

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f"), max_size=20)


@given(
    text,
    st.integers(1, 500),
    st.floats(1e-9, 10),
    st.floats(0.001, 1),
    st.lists(text, max_size=3),
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,8}", fullmatch=True),
        st.one_of(st.booleans(), st.integers(-9, 9), st.floats(allow_nan=False), text),
        max_size=4,
    ),
    st.none() | st.integers(1, 99),
)
def test_toml_comes_back_the_same(partition, clients, lr, share, poison, options, train_size):
    config = RunConfig(
        partition=partition,
        clients=clients,
        lr=lr,
        participation=share,
        poison=tuple(poison),
        options=options,
        train_size=train_size,
    )
    assert RunConfig.of(tomllib.loads(config.toml())) == config


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"client": 3}, "no setting 'client'; did you mean 'clients'?"),
        ({"clients": 0}, "clients must be 1 or more, not 0"),
        ({"clients": "ten"}, "setting 'clients' must be a whole number, not 'ten'"),
        ({"clients": True}, "must be a whole number, not True"),
        ({"lr": 0}, "lr must be a positive number"),
        ({"lr": float("inf")}, "lr must be a positive number"),
        ({"participation": 1.5}, "above 0 and at most 1"),
        ({"optimizer": "adma"}, "did you mean 'adam'"),
        ({"optimizer": "LBFGS"}, "optimizer cannot be LBFGS: it computes the loss several times"),
        ({"schedule": "cosin"}, "did you mean 'cosine'? it can be: constant, cosine, or step:"),
        ({"schedule": "step:0:0.5"}, "schedule is 'step:0:0.5'; it can be"),
        ({"schedule": "step:2"}, "with 1 round or more and a factor between 0 and 1"),
        ({"schedule": "step:2:1.5"}, "a factor between 0 and 1, such as step:10:0.5"),
        ({"warmup": 3, "rounds": 3}, "warmup 3 leaves no round of 3 to train at the full"),
        ({"weight_decay": -1.0}, "weight_decay must be 0 or more, not -1"),
        ({"weight_decay": 0.1, "optimizer": "rprop"}, "weight_decay has no effect on rprop"),
        ({"attendance": "diurnale:4"}, "did you mean 'diurnal'? it can be: random, fixed, diurnal"),
        ({"attendance": "dropout:1"}, "dropout:P with a probability above 0 and below 1"),
        ({"attendance": "diurnal:nan", "participation": 0.5}, "attendance is 'diurnal:nan'; it"),
        ({"attendance": "fixed"}, "attendance fixed has no effect unless participation is below 1"),
        ({"augment": "flop"}, "augment is 'flop'; did you mean 'flip'? it can be: flip, crop, or"),
        ({"max_gradient_norm": 0}, "max_gradient_norm must be a positive number"),
        (
            {"momentum": 0.9, "optimizer": "adam"},
            "momentum has no effect unless optimizer is sgd; it is adam",
        ),
        ({"validation_share": 1.0}, "below 1"),
        ({"train_sizes": [9, 9]}, "train_sizes has 2 numbers for 10 clients; it needs one"),
        ({"test_sizes": [9, 9]}, "test_sizes has 2 numbers for 10 clients; it needs one"),
        ({"clients": 2, "test_sizes": [9, 0]}, "test_sizes has 0; every client needs 1 image or"),
        ({"clients": 1, "test_sizes": [9], "test_size": 9}, "test_sizes has no effect unless"),
        ({"options": 3}, "setting 'options' must be a table, not 3"),
        ({"poison": [1]}, "setting 'poison' must be text, not 1"),
        ({"seed": None}, "setting 'seed' must be a whole number, not None"),
    ],
)
def test_what_is_wrong_is_said(values, sentence):
    with pytest.raises(InvalidInputError) as error:
        RunConfig.of(values)
    assert sentence in str(error.value)


def test_a_file_that_is_no_toml_is_named(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("clients = = 3")
    with pytest.raises(InvalidInputError, match=r"run\.toml is not a TOML file"):
        RunConfig.read(path)
    path.write_text("clint = 3")
    with pytest.raises(InvalidInputError, match=r"run\.toml: there is no setting 'clint'"):
        RunConfig.read(path)
    with pytest.raises(InvalidInputError, match="cannot read"):
        RunConfig.read(tmp_path / "nothing.toml")


def test_options_of_an_algorithm_are_read_as_their_types():
    assert build_algorithm("fedprox", {"mu": "0.5"}).mu == 0.5
    assert build_algorithm("fedavg-ft", {"fine-tune-epochs": "3"}).fine_tune_epochs == 3
    assert build_algorithm("fedavg-ft", {"fine_tune_epochs": "none"}).fine_tune_epochs is None
    assert build_algorithm("domain", {"separate_poisoned": "false"}).separate_poisoned is False
    with pytest.raises(InvalidInputError, match="no option of fedprox 'nu'; there are: mu"):
        build_algorithm("fedprox", {"nu": 1})
    with pytest.raises(InvalidInputError, match="it has none"):
        build_algorithm("fedavg", {"mu": 1})
    with pytest.raises(InvalidInputError, match="must be 0 or more"):
        build_algorithm("fedprox", {"mu": -1})


def test_a_field_without_default_must_be_given():
    @dataclass(frozen=True)
    class Needy:
        how: Literal["a", "b"]

    with pytest.raises(InvalidInputError, match="'how' is not given"):
        from_values(Needy, {}, "option")


OLD = {
    "fedfomo": ({"epsilon": 0.5, "epsilon_decay": 0.1}, {"explore": 0.5, "explore_decay": 0.1}),
    "fedacs": ({"delta": -1.0}, {"threshold": -1.0}),
    "per-fedavg": ({"variant": "hf", "delta": 0.1}, {"variant": "hf", "difference_step": 0.1}),
    "pfedsv": ({"keep": "non-negative"}, {"keep_scores": "non-negative"}),
}
"""Options of each method by the names that older folders have, and by those of today."""


@pytest.mark.parametrize("name", OLD)
def test_options_of_older_folders_are_read(name, tmp_path):
    before, now = OLD[name]
    path = tmp_path / "config.toml"
    path.write_text(RunConfig(algorithm=name, options=now).toml())
    for old, new in zip(before, now, strict=True):
        path.write_text(path.read_text().replace(f"\n{new} = ", f"\n{old} = "))
    assert all(f"\n{old} = " in path.read_text() for old in before)
    there, config = RunConfig.read(path), RunConfig(algorithm=name, options=now)
    assert not differing_settings(there, config)
    assert build_algorithm(name, there.options) == build_algorithm(name, now)


def test_an_option_by_both_of_its_names_is_refused():
    with pytest.raises(InvalidInputError, match="given twice"):
        RunConfig(algorithm="pfedsv", options={"keep": "positive", "keep_scores": "positive"})


def test_folders_of_reproductions_keep_their_names():
    """They were made when the options had their first names."""
    config = RunConfig(algorithm="fedfomo", options={"explore": 0.3, "explore_decay": 0.05})
    assert digest_of_all_settings(config) == "62cfeb2ee0"


def test_no_option_is_called_as_a_setting():
    settings = {each.name for each in options_of(RunConfig)}
    for name in ALGORITHMS:
        assert not settings & {each.name for each in options_of(ALGORITHMS[name])}

    @dataclass(frozen=True)
    class Hasty(Algorithm):
        rounds: int = option(1, changes="models")

    with pytest.raises(InvalidInputError, match="'rounds', which is a setting of every run"):
        ALGORITHMS.register("hasty")(Hasty)
    assert "hasty" not in ALGORITHMS


def test_what_belongs_into_traits_is_refused_elsewhere():
    @dataclass(frozen=True)
    class Earlier(Algorithm):
        @property
        def averages(self):
            return False

    with pytest.raises(InvalidInputError, match=r"'averages'.*`traits`"):
        ALGORITHMS.register("earlier")(Earlier)
    assert "earlier" not in ALGORITHMS
