"""Networks for tables and sequences."""

from __future__ import annotations

import pytest
import torch

from coalitions.errors import InvalidInputError
from learners.data.client_data import Input, Targets
from learners.models import network_for, suited_model

TOKENS = {"inputs": Input((6,), (9,))}
STEPS = {"inputs": Input((6, 2))}
SEQUENCES = ["gru", "lstm", "transformer", "char-lstm"]


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_sequence_has_one_answer_or_one_at_each_step(name):
    tokens = torch.randint(0, 9, (3, 6), generator=torch.Generator().manual_seed(0))
    one = network_for(name, TOKENS, Targets("classification", 4), seed=0)
    assert one(tokens).shape == (3, 4)
    every = network_for(name, TOKENS, Targets("next-token", 9), seed=0)
    assert every(tokens).shape == (3, 6, 9)
    numbers = network_for(name, STEPS, Targets("regression", 1), seed=0)
    assert numbers(torch.randn(3, 6, 2)).shape == (3, 1)


@pytest.mark.parametrize("name", SEQUENCES)
def test_the_next_token_is_told_from_those_before_it_alone(name):
    network = network_for(name, TOKENS, Targets("next-token", 9), seed=0).eval()
    tokens = torch.zeros(1, 6, dtype=torch.int64)
    changed = tokens.clone()
    changed[0, 4] = 5
    with torch.no_grad():
        apart = (network(tokens) - network(changed)).abs().amax(2)[0]
    assert (apart[:4] == 0).all()
    assert (apart[4:] > 0).all()


def test_every_column_of_codes_has_an_embedding_of_its_own():
    inputs = {"numbers": Input((3,)), "codes": Input((2,), (4, 7))}
    network = network_for("tabular", inputs, Targets("classification", 2), seed=0).eval()
    given = {"numbers": torch.randn(5, 3), "codes": torch.zeros(5, 2, dtype=torch.int64)}
    before = network(**given)
    assert before.shape == (5, 2)
    given["codes"][:, 1] = 6
    assert (network(**given) != before).any()
    given["codes"][:, 0] = 4  # the first has four values
    with pytest.raises(IndexError):
        network(**given)


def test_initial_weights_depend_on_the_seed_alone():
    weights = [
        network_for("transformer", TOKENS, Targets("next-token", 9), seed=seed).state_dict()
        for seed in (3, 3, 4)
    ]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert not torch.equal(weights[0]["head.weight"], weights[2]["head.weight"])


@pytest.mark.parametrize(
    ("inputs", "kind", "name"),
    [
        ({"inputs": Input((1, 28, 28))}, "classification", "lenet-5"),
        ({"inputs": Input((12,))}, "regression", "mlp"),
        ({"inputs": Input((3,), (2, 3, 4))}, "classification", "tabular"),
        (STEPS, "classification", "gru"),
        (TOKENS, "next-token", "gru"),
    ],
)
def test_a_suited_network_is_found(inputs, kind, name):
    assert suited_model(inputs, Targets(kind, 9)) == name


def test_a_network_for_other_data_says_so():
    with pytest.raises(InvalidInputError, match=r"takes one input, tokens .* not inputs of 1×8×8"):
        network_for("gru", {"inputs": Input((1, 8, 8))}, Targets("classification", 2), seed=0)
    with pytest.raises(InvalidInputError, match="mlp takes one input of real numbers"):
        network_for("mlp", TOKENS, Targets("classification", 2), seed=0)
