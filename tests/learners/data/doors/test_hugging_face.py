"""Data sets of Hugging Face: divided or not, pictures, lists, single values."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from coalitions.errors import InvalidInputError
from learners.data import from_hf
from learners.data.own.hugging_face import arrays_of_hf

datasets = pytest.importorskip("datasets", reason="datasets is not installed")


def rows(n=10, **more):
    columns = {"x": [[0.5, float(k)] for k in range(n)], "label": [k % 2 for k in range(n)]}
    return datasets.Dataset.from_dict(columns | {name: more[name](n) for name in more})


def pictures(n=10, mode="L"):
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    shown = [Image.new(mode, (6, 4), "white" if k % 2 else "black") for k in range(n)]
    labels = [k % 2 for k in range(n)]
    return datasets.Dataset.from_dict({"image": shown, "label": labels}, features=features)


def sizes(outcome):
    return {name: [len(targets) for _, targets in parts] for name, parts in outcome.clients.items()}


def test_a_data_set_for_each_client_is_divided_here_unless_it_is_already():
    divided = datasets.DatasetDict(train=rows(6), test=rows(4))
    assert sizes(arrays_of_hf({"ann": rows(), "bob": rows(20)})) == {"ann": [8, 2], "bob": [16, 4]}
    assert sizes(arrays_of_hf([divided, divided])) == {"client 0": [6, 4], "client 1": [6, 4]}


def test_rows_of_all_clients_are_told_apart_by_a_column():
    together = rows(20, site=lambda n: [f"s{k % 4 // 2}" for k in range(n)])
    outcome = arrays_of_hf(together, client_column="site")
    assert sizes(outcome) == {"s0": [8, 2], "s1": [8, 2]}
    assert outcome.clients["s0"][0][0]["inputs"].shape == (8, 2)


def test_partitions_of_flwr_datasets_are_clients():
    partitioner = SimpleNamespace(num_partitions=3)
    federated = SimpleNamespace(
        partitioners={"train": partitioner}, load_partition=lambda i: rows(10 + 5 * i)
    )
    assert sizes(arrays_of_hf(federated)) == {
        "client 0": [8, 2],
        "client 1": [12, 3],
        "client 2": [16, 4],
    }


def test_pictures_get_channels_and_classes_their_names():
    outcome = arrays_of_hf({"ann": pictures(), "bob": pictures(mode="RGB")})
    (inputs, labels), _ = outcome.clients["ann"]
    assert inputs["inputs"].shape == (8, 1, 4, 6)
    assert (inputs["inputs"][labels == 1] == 1).all()
    assert (inputs["inputs"][labels == 0] == -1).all()
    assert outcome.clients["bob"][0][0]["inputs"].shape == (8, 3, 4, 6)
    assert outcome.classes == ("cat", "dog")


def test_single_values_are_dealt_like_a_table():
    def patients(seed):
        rng = np.random.default_rng(seed)
        return datasets.Dataset.from_dict(
            {
                "age": rng.normal(60, 9, 30).tolist(),
                "ward": [None if k == 4 else "ab"[k % 2] for k in range(30)],
                "label": [bool(k % 3) for k in range(30)],
            }
        )

    outcome = arrays_of_hf({"ann": patients(0), "bob": patients(1)})
    (inputs, targets), _ = outcome.clients["ann"]
    assert inputs["numbers"].mean() == pytest.approx(0, abs=1e-6)
    assert outcome.codes == {"categories": (4,)}
    assert outcome.classes == ("false", "true")
    assert targets.dtype == np.int64


def test_a_run_takes_the_federation():
    pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    from learners import run

    data = from_hf({"ann": pictures(), "bob": pictures()})
    result = run({"rounds": 1, "workers": 1}, data=data)
    assert result.client_names == ("ann", "bob")
    assert "20 rows of 2 clients, predicting label from image" in data.told


@pytest.mark.parametrize(
    ("data", "asked", "message"),
    [
        (lambda: rows(), {}, "name the column that says whose they are"),
        (lambda: {}, {}, "there is no client"),
        (lambda: {"ann": 3}, {}, "client 'ann' has a int"),
        (lambda: {"ann": rows()}, {"target": "lable"}, "did you mean 'label'"),
        (lambda: {"ann": rows(), "bob": pictures()}, {}, "client 'bob' has no column 'x'"),
        (lambda: {"ann": rows(2)}, {}, "client 'ann' has 2 samples, too few"),
        (lambda: rows(), {"client_column": "site"}, "no column 'site'"),
        (
            lambda: {"ann": rows(text=lambda n: ["a word"] * n)},
            {},
            "column 'text' holds <U6, and networks take numbers",
        ),
        (
            lambda: {"ann": datasets.Dataset.from_dict({"x": [[1.0], [1.0, 2.0]], "y": [0, 1]})},
            {},
            "rows of different sizes",
        ),
    ],
)
def test_what_cannot_be_used_gets_one_sentence(data, asked, message):
    with pytest.raises(InvalidInputError) as error:
        arrays_of_hf(data(), **asked)
    assert message in str(error.value)
