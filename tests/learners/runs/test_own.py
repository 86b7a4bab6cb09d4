"""Data, networks, losses and metrics of one's own, from Python."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

from coalitions.errors import InvalidInputError
from learners.runs.forecast import forecast
from learners.runs.result import load_model
from learners.runs.run import resume, run
from tests.contracts import tasks

TINY = {"rounds": 2, "local_epochs": 1, "batch_size": 8, "workers": 1, "lr": 0.1}


def points(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)).astype(np.float32)
    return x, (x[:, 0] + 0.5 * x[:, 1] > 0).astype(np.int64)


def pairs(clients=2):
    return [(points(20, 2 * c), points(15, 2 * c + 1)) for c in range(clients)]


class Line(nn.Module):
    def __init__(self, outputs=2):
        super().__init__()
        self.last = nn.Linear(2, outputs)

    def forward(self, x):
        return self.last(x)


class Listed(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), int(self.y[i])


class Tabled(Listed):
    def __getitem__(self, i):
        return {"point": self.x[i], "label": int(self.y[i])}


def scores(result):
    return result.metrics["mean_test_loss"], result.metrics["per_client_test_accuracy"]


def test_arrays_tensors_and_data_sets_give_the_same_run():
    expected = scores(run(TINY, data=pairs(), model=Line))
    forms = {
        "tensors": lambda x, y: (torch.from_numpy(x), torch.from_numpy(y)),
        "TensorDataset": lambda x, y: TensorDataset(torch.from_numpy(x), torch.from_numpy(y)),
        "Dataset": Listed,
        "DataLoader": lambda x, y: DataLoader(Listed(x, y), batch_size=3),
        "tabled": Tabled,
    }
    for name, form in forms.items():
        data = [tuple(form(*part) for part in parts) for parts in pairs()]
        assert scores(run(TINY, data=data, model=Line)) == expected, name


def test_words_of_a_table_are_categories_and_classes():
    pandas = pytest.importorskip("pandas")

    def table(n, seed):
        rng = np.random.default_rng(seed)
        ward = rng.choice(["east", "west"], n)
        ward[:2] = ["east", "west"]
        return pandas.DataFrame(
            {"age": rng.normal(size=n), "ward": ward, "died": np.where(ward == "east", "no", "yes")}
        )

    data = {"a": (table(30, 0), table(20, 1)), "b": (table(30, 2), table(20, 3))}
    result = run(TINY | {"rounds": 15}, data=data, target="died", metrics=["auroc", "accuracy"])
    assert result.config.model == "tabular"
    assert result.mean_test_accuracy > 0.9
    assert list(result.metrics["metrics"]) == ["auroc", "accuracy"]


def test_several_inputs_are_handed_over_by_their_names():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.wards = nn.Embedding(4, 2)
            self.last = nn.Linear(3 + 4, 1)

        def forward(self, *, codes, numbers):
            return self.last(torch.cat([self.wards(codes).flatten(1), numbers], 1))

    data = tasks.federation("tabular regression")
    result = run(TINY | {"rounds": 20}, data=data, model=Two, metrics=["r2", "rmse"])
    assert result.metrics["metrics"]["r2"]["mean"] > 0.5
    assert result.to_dict()["mean_test_accuracy"] is None
    assert result.to_dict()["per_client_test_accuracy"] is None


def test_next_tokens_are_learnt():
    result = run(TINY | {"rounds": 12, "local_epochs": 2}, data=tasks.federation("next token"))
    assert result.config.model == "gru"
    assert result.mean_test_accuracy > 0.9


def test_a_loss_and_a_metric_may_be_functions():
    def hinge(outputs, targets):
        return functional.multi_margin_loss(outputs, targets)

    def share_right(truth, outputs):
        return (outputs.argmax(1) == truth).mean()

    plain = run(TINY, data=pairs(), model=Line)
    own = run(TINY, data=pairs(), model=Line, loss=hinge, metrics=[share_right])
    assert scores(own)[0] != scores(plain)[0]
    told = own.metrics["metrics"]["share_right"]["per_client"]
    assert told == pytest.approx(own.per_client_test_accuracy)


def test_the_folder_has_names_and_metrics_and_gives_the_model_back(tmp_path):
    data = dict(zip(["north", "south"], pairs(), strict=True))
    result = run(TINY, tmp_path / "run", data=data, model=Line, metrics=["auroc"])
    told = json.loads((tmp_path / "run" / "result.json").read_text())
    assert told["client_names"] == ["north", "south"]
    assert (
        told["metrics"]["auroc"]["per_client"] == result.metrics["metrics"]["auroc"]["per_client"]
    )
    network = load_model(tmp_path / "run", 1, model=Line)
    for mine, theirs in zip(network.parameters(), result.model(1).parameters(), strict=True):
        assert torch.equal(mine, theirs)
    with pytest.raises(InvalidInputError, match="a network of its user's own"):
        load_model(tmp_path / "run", 1)


class Stop(Exception):  # noqa: N818
    pass


def stop(round):
    raise Stop


def test_resume_asks_for_the_same_data_and_model(tmp_path):
    whole = run(TINY, data=pairs(), model=Line)
    with pytest.raises(Stop):
        run(TINY, tmp_path / "run", data=pairs(), model=Line, on_round=stop)
    with pytest.raises(InvalidInputError, match="give the same again, as data="):
        resume(tmp_path / "run", model=Line)
    with pytest.raises(InvalidInputError, match="give the same again, as model="):
        resume(tmp_path / "run", data=pairs())
    other = pairs()
    other[0][0][0][0, 0] += 1
    with pytest.raises(InvalidInputError, match="data is not the data that the run began with"):
        resume(tmp_path / "run", data=other, model=Line)
    with pytest.raises(InvalidInputError, match="model is not the model that the run began with"):
        resume(tmp_path / "run", data=pairs(), model=lambda: nn.Linear(2, 2))
    assert scores(resume(tmp_path / "run", data=pairs(), model=Line)) == scores(whole)


def test_a_network_may_come_with_its_weights():
    network = Line()
    before = network.last.weight.detach().clone()
    first = run(TINY, data=pairs(), model=network)
    assert scores(run(TINY | {"seed": 1}, data=pairs(), model=Line)) != scores(first)
    assert scores(run(TINY, data=pairs(), model=network)) == scores(first)
    assert torch.equal(network.last.weight, before)


def test_a_network_that_does_not_fit_is_refused_before_anything_is_trained():
    for model, words in {
        lambda: nn.Linear(2, 1): r"gives outputs of shape \(2, 1\).*'client 0'.*needs \(2, 2\)",
        lambda: nn.Linear(3, 2): "cannot take what clients have",
        lambda: 3: "must make a torch.nn.Module",
        lambda missing: Line(): "called without arguments",
    }.items():
        with pytest.raises(InvalidInputError, match=words):
            run(TINY, data=pairs(), model=model, on_round=stop)


def test_an_error_of_forward_tells_how_it_was_called_and_with_which_shapes():
    class Wrong(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(2, 2)

        def forward(self, x):
            return self.last(x)

    data = tasks.federation("tabular classification")
    named = ", ".join(data.inputs)
    shapes = " and ".join(
        f"{'int64' if each.codes else 'float32'} [N, {each.shape[0]}]"
        for each in data.inputs.values()
    )
    said = f"forward(self, {named}) is called with these names, shapes {shapes}: "
    with pytest.raises(InvalidInputError, match=re.escape(said)):
        run(TINY, data=data, model=Wrong)
    with pytest.raises(InvalidInputError, match=r"called with one tensor, float32 \[N, 2\]: "):
        run(TINY, data=pairs(), model=lambda: nn.Linear(3, 2))


def test_outputs_for_classes_that_nobody_has_are_no_fault():
    assert run(TINY, data=pairs(), model=lambda: Line(5)).mean_test_accuracy is not None


def test_a_network_whose_last_linear_layer_is_no_head_is_not_cut_there():
    class Crossed(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 2)
            self.body = nn.Linear(2, 4)  # comes last in the list, but not in the network

        def forward(self, x):
            return self.head(self.body(x).relu())

    assert run(TINY, data=pairs(), model=Crossed).mean_test_accuracy is not None
    for name in ("fedrep", "fedrod", "fedproto", "fedc2i"):
        with pytest.raises(InvalidInputError, match="needs a linear layer that gives its outputs"):
            run(TINY | {"algorithm": name}, data=pairs(), model=Crossed, on_round=stop)


def test_records_are_private_only_where_single_gradients_can_be_had():
    private = TINY | {"dp": "records", "noise": 1.0, "clip": 1.0}
    assert run(private, data=tasks.federation("tabular regression")).epsilon > 0
    with pytest.raises(InvalidInputError, match="--dp updates works with any"):
        run(private, data=tasks.federation("next token"), on_round=stop)
    with pytest.raises(InvalidInputError, match="its weights tell"):
        run(private | {"loss": "balanced-cross-entropy"}, data=pairs(), on_round=stop)


def test_what_has_no_say_is_refused():
    with pytest.raises(InvalidInputError, match="train_size has no effect on data of one's own"):
        run(TINY | {"train_size": 5}, data=pairs())
    with pytest.raises(InvalidInputError, match="the partition iid has no effect"):
        run(TINY | {"partition": "iid"}, data=pairs())


def test_the_game_and_the_gain_may_be_any_metric():
    data = tasks.federation("tabular classification")
    for name, option in (("pfedsv", "utility"), ("cffl", "gain")):
        results = [
            run(TINY | {"algorithm": name, "options": {option: metric}}, data=data)
            for metric in ("auto", "accuracy", "log-loss")
        ]
        losses = [result.metrics["mean_test_loss"] for result in results]
        assert losses[0] == losses[1]
        assert losses[0] != losses[2]
        with pytest.raises(InvalidInputError, match="rmse is not for classification"):
            run(TINY | {"algorithm": name, "options": {option: "rmse"}}, data=data, on_round=stop)


def test_classes_can_be_taken_for_numbers():
    numbers = TINY | {"task": "regression", "clients": 2, "train_size": 20, "lr": 0.01}
    result = run(numbers)
    assert result.task == "regression"
    assert result.mean_test_accuracy is None
    assert result.metrics["metrics"]["rmse"]["mean"] > 0
    with pytest.raises(InvalidInputError, match="digits is classification, not multi-label"):
        run(TINY | {"task": "multi-label"})
    assert forecast(numbers).exact


def test_what_is_wrong_with_a_table_is_said_with_client_part_and_column():
    pandas = pytest.importorskip("pandas")

    def table(n=12, **more):
        columns = {"age": np.arange(n) / 4, "day": pandas.date_range("2024-01-01", periods=n)}
        return pandas.DataFrame(columns | {"died": np.arange(n) % 2} | more)

    def refused(data, message):
        with pytest.raises(InvalidInputError, match=message):
            run(TINY, data=data, target="died")

    sound = (table(), table(6))
    endless = table(age=[0.5, np.inf] * 6)
    refused(
        {"a": sound, "b": (endless, table())}, "data of b, row 1: client 'b', column 'age' has inf"
    )
    fewer = table(6).drop(columns="age")
    refused({"a": (table(), fewer)}, "test data of a: client 'a' has no column 'age'")
    refused({"a": (fewer, fewer), "b": sound}, "training data of a: client 'b' has no column 'age'")
    refused({"a": sound, "b": (table(), None)}, "client 'b' has no test data; give it some")
    refused(table(), "name the column with the client's name, as client_column=")


def test_classes_may_stand_in_a_column():
    column = [tuple((x, y[:, None]) for x, y in parts) for parts in pairs()]
    assert scores(run(TINY, data=pairs(), model=Line)) == scores(run(TINY, data=column, model=Line))
    labels = run(TINY | {"task": "multi-label"}, data=column)
    assert labels.task == "multi-label"


def test_messages_name_the_network_and_the_data_as_their_user_does():
    with pytest.raises(
        InvalidInputError, match=r"the network Line gives outputs of shape \(2, 1\)"
    ):
        run(TINY, data=pairs(), model=lambda: Line(1))
    numbers = [tuple((x, x[:, 0]) for x, _ in parts) for parts in pairs()]
    with pytest.raises(InvalidInputError, match="the task of your data is regression"):
        run(TINY | {"algorithm": "fedproto"}, data=numbers)
    same = [tuple((x, 0 * y) for x, y in parts) for parts in pairs(1)]
    with pytest.raises(InvalidInputError, match=r"^the training data of 'client 0' have one class"):
        run(TINY, data=same)
