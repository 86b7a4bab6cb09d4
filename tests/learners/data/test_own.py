"""A federation of anybody's arrays: what is wrong is said, with the client's name."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from coalitions.errors import InvalidInputError
from learners.data.client_data import Input, Targets
from learners.data.own.federation_of import federation_of, fingerprint

X = np.arange(12, dtype=np.float64).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 0, 1])
GOOD = ((X, Y), (X, Y))


def with_one(train=(X, Y), test=(X, Y), **more):
    """A federation with a good client and another one."""
    return federation_of("mine", {"good": GOOD, "odd": (train, test)}, **more)


def test_arrays_become_tensors_and_validation_data_are_set_aside():
    data = with_one(validation_share=0.34)
    assert data.names == ("good", "odd")
    assert data.inputs == {"inputs": Input((2,))}
    assert data.targets == Targets("classification", 2)
    client = data.clients[0]
    assert (len(client.train), len(client.validation), len(client.test)) == (4, 2, 6)
    assert client.train.inputs.dtype == torch.float32
    assert set(client.validation.targets.tolist()) == {0, 1}  # of every class
    together = torch.cat([client.train.inputs, client.validation.inputs])
    assert sorted(together[:, 0].tolist()) == X[:, 0].tolist()


def test_the_same_data_have_the_same_fingerprint():
    assert fingerprint(with_one()) == fingerprint(with_one())
    other = X.copy()
    other[3, 1] += 1
    assert fingerprint(with_one(train=(other, Y))) != fingerprint(with_one())
    assert fingerprint(with_one(seed=1)) == fingerprint(with_one())
    assert fingerprint(with_one(task="regression")) != fingerprint(with_one())


@pytest.mark.parametrize(
    ("targets", "kind", "n_outputs"),
    [
        (Y, "classification", 2),
        (np.array(["a", "b", "c", "a", "b", "c"]), "classification", 3),
        (Y > 0, "classification", 2),
        (Y + 0.5, "regression", 1),
        (np.stack([Y, Y + 0.5], 1), "regression", 2),
        (np.stack([Y, 1 - Y, Y], 1), "multi-label", 3),
        (np.stack([Y, Y + 1, Y + 3], 1), "next-token", 5),
    ],
)
def test_targets_tell_what_they_are(targets, kind, n_outputs):
    data = federation_of("mine", {"a": ((X, targets), (X, targets))})
    assert (data.targets.kind, data.targets.n_outputs) == (kind, n_outputs)


def test_the_task_may_be_said():
    data = federation_of("mine", {"a": ((X, Y), (X, Y))}, task="regression")
    assert data.clients[0].train.targets.dtype == torch.float32


def test_whole_numbers_are_codes():
    codes = np.stack([Y, Y * 2], 1)
    inputs = {"numbers": X, "codes": codes}
    data = federation_of("mine", {"a": ((inputs, Y), (inputs, Y))})
    assert data.inputs == {"numbers": Input((2,)), "codes": Input((2,), (2, 3))}
    wider = federation_of("mine", {"a": ((inputs, Y), (inputs, Y))}, codes={"codes": [4, 4]})
    assert wider.inputs["codes"].codes == (4, 4)
    with pytest.raises(InvalidInputError, match="codes has a code 2, and there are 2"):
        federation_of("mine", {"a": ((inputs, Y), (inputs, Y))}, codes={"codes": 2})


NAN = X.copy()
NAN[2, 1] = np.nan


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ({"test": (X[:0], Y[:0])}, "'odd' has no test data"),
        ({"train": (X[:0], Y[:0])}, "'odd' has no training data"),
        ({"train": (X[:, :1], Y)}, "'odd': inputs of its training data is 1 numbers.* 2 numbers"),
        ({"test": (X.astype(int), Y)}, "'odd': inputs of its test data is 2 codes"),
        ({"train": ({"x": X}, Y)}, "'odd': its training data have the inputs x"),
        ({"train": (NAN, Y)}, "'odd': inputs of its training data has no finite.*row 2, column 1"),
        ({"train": (X, Y[:3])}, "'odd': its training data have 6 rows of inputs and 3 targets"),
        ({"train": (X, Y - 1)}, "'odd' has the class -1; classes count from 0"),
        ({"train": (X.astype(str), Y)}, "'odd': inputs of its training data is not an array of"),
        ({"train": (X, np.where(Y, np.nan, 1))}, "'odd': a target is not finite"),
        ({"train": (X[:1], Y[:1])}, "'odd' has one training sample"),
        ({"train": (X, np.stack([Y, Y], 1))}, r"'odd': targets of shape \(6, 2\)"),
        ({"train": (X, Y + 0.5)}, "'odd': a target is not a whole number"),
    ],
)
def test_what_is_wrong_with_a_client_is_said_with_its_name(odd, words):
    with pytest.raises(InvalidInputError, match=words):
        with_one(**odd)


def test_one_class_in_training_is_let_through_and_told():
    data = with_one(train=(X, 0 * Y))
    assert data.told == "a client has one class only in the training data: 'odd' (0)"
    assert len(data.clients[data.names.index("odd")].train) > 0
    assert with_one(train=(X, Y)).told == ""
    names = [f"site {c}" for c in range(7)]
    parts = {name: ((X, np.full(6, k % 2)), (X, Y)) for k, name in enumerate(names)}
    told = federation_of("mine", parts, class_names=("no", "yes")).told
    assert told.startswith("7 clients have one class only in the training data: 'site 0' (no), ")
    assert told.endswith("'site 4' (no), …")
    labels = np.tile([[1, 0]], (6, 1))
    told = federation_of("mine", {"a": ((X, labels), (X, labels)), "b": ((X, 1 - labels),) * 2})
    assert told.told.endswith("'a' (0), 'b' (1)")


def test_one_class_everywhere_is_refused():
    with pytest.raises(InvalidInputError, match=r"all 2 clients, 'a' first, have one class only"):
        federation_of("mine", {name: ((X, 0 * Y), (X, Y)) for name in "ab"})


def test_a_constant_target_and_a_label_that_is_neither_are_refused():
    with pytest.raises(InvalidInputError, match="'a': the target of all its training data is the"):
        federation_of("mine", {"a": ((X, np.ones(6)), (X, np.ones(6)))})
    with pytest.raises(InvalidInputError, match="'a': a label is there or not"):
        federation_of("mine", {"a": ((X, 3 * X), (X, X))}, task="multi-label")
    with pytest.raises(InvalidInputError, match="the task is 'guess'; it can be: auto, class"):
        federation_of("mine", {"a": GOOD}, task="guess")
    with pytest.raises(InvalidInputError, match="'a': the targets of its training data are no arr"):
        federation_of("mine", {"a": ((X, 3), (X, Y))})
    with pytest.raises(InvalidInputError, match="mine has no clients"):
        federation_of("mine", {})


def test_classes_that_are_text_are_among_those_that_are_named():
    words = np.array(["no", "yes"])[Y]
    data = federation_of("mine", {"a": ((X, words), (X, words))}, class_names=["yes", "no"])
    assert data.targets.names == ("yes", "no")
    assert data.clients[0].test.targets.tolist() == [1, 0, 1, 0, 1, 0]
    with pytest.raises(InvalidInputError, match="'a' has the class 'no', which is none of the 1"):
        federation_of("mine", {"a": ((X, words), (X, words))}, class_names=["yes"])


def test_labels_can_be_poisoned_and_pixels_only_of_pictures():
    data = with_one(poison=["swap-0-1:1"])
    assert data.clients[1].poisoned
    clean = with_one().clients[1]
    assert torch.equal(data.clients[1].train.targets, 1 - clean.train.targets)
    assert torch.equal(data.clients[1].test.targets, clean.test.targets)
    with pytest.raises(InvalidInputError, match="the poison noise is for pictures"):
        with_one(poison=["noise:1"])
    with pytest.raises(InvalidInputError, match="poisons data with one class each"):
        federation_of("mine", {"a": ((X, X), (X, X))}, poison=["wrong-labels:0"])


def codes(*columns):
    return np.stack([np.resize(column, 6) for column in columns], 1)


def test_codes_and_classes_of_ordinary_data_are_taken():
    largest = 2**18 - 1  # of a tokenizer, where few of its tokens occur
    data = federation_of("mine", {"a": ((codes([3, largest]), Y), (codes([0]), Y))})
    assert data.inputs["inputs"].codes == (largest + 1,)
    tokens = codes([5, largest], [7, largest])
    data = federation_of("mine", {"a": ((tokens, tokens), (tokens, tokens))})
    assert data.targets == Targets("next-token", largest + 1)
    many = np.arange(0, 3_000_000, 10)[:, None]  # one in ten of all
    data = federation_of("mine", {"a": ((many, many[:, 0] % 3), (many, many[:, 0] % 3))})
    assert data.inputs["inputs"].codes == (2_999_991,)
    data = with_one(train=(X, Y * 9_999))
    assert data.targets.n_outputs == 10_000


@pytest.mark.parametrize("far", [2**18, 10**8, 2**40, 2**62])
def test_a_code_far_above_the_number_of_codes_is_refused_with_the_client_s_name(far):
    odd = codes([0, far])
    clients = {"good": ((codes([0, 1]), Y),) * 2, "odd": ((odd, Y),) * 2}
    with pytest.raises(InvalidInputError, match=f"'odd': inputs has the code {far}, and no more"):
        federation_of("mine", clients)
    clients = {"odd": ((X, np.hstack([odd, odd])),) * 2}
    sentence = "a target is beyond" if far > 2**53 else f"the target has the token {far}"
    with pytest.raises(InvalidInputError, match=f"client 'odd': {sentence}"):
        federation_of("mine", clients)


def test_more_than_ten_thousand_classes_are_refused():
    with pytest.raises(InvalidInputError, match="'odd' has the class 10000: there would be 10001"):
        with_one(train=(X, Y * 10_000))
    names = [f"class {k}" for k in range(10_001)]
    with pytest.raises(InvalidInputError, match="there would be 10001 classes, and 10000 are the"):
        with_one(train=(X, Y), class_names=names)
    words = np.array(names)
    many = (np.zeros((10_001, 1)), words)
    with pytest.raises(InvalidInputError, match="there would be 10001 classes"):
        federation_of("mine", {"a": (many, many)})


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_all_floats_are_refused_without_a_warning():
    with pytest.raises(InvalidInputError, match="'odd': inputs of its training data has no finite"):
        with_one(train=(X * 1e300, Y))
