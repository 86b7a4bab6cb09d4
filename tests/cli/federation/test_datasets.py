"""`coalitions datasets` as a user types it."""

from __future__ import annotations

import json
import os

import pytest

from tests.cli.typed import check_refused, in_a_process, typed

PLUGIN = '''
import numpy as np
from learners import DATASETS, DataSet, Images, ImageSet

@DATASETS.register("squares")
class Squares(DataSet):
    """Grey squares of mine."""

    partition = "iid"

    def load(self, folder):
        pool = Images(np.zeros((40, 4, 4), np.uint8), np.arange(40) % 2)
        return {"": ImageSet(pool, pool, n_classes=2)}
'''


def datasets(*arguments, run=typed, **options):
    environment = {k: v for k, v in os.environ.items() if k != "COALITIONS_DATA"}
    return run("datasets", *arguments, env=environment | {"COLUMNS": "200"}, **options)


def test_all_are_listed_with_what_is_here(tmp_path):
    (tmp_path / "mnist.npz").touch()
    result = datasets("--json", "--data-dir", tmp_path)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["digits"]["here"] is True
    assert document["mnist"] == {
        "here": True,
        "origin": str(tmp_path / "mnist.npz"),
        "description": "Handwritten digits, 28×28 grey, 60 000 / 10 000",
        "partition": "pathological:2",
        "train_size": None,
    }
    assert document["cifar10"]["here"] is False
    assert "download" in document["cifar10"]["origin"]
    assert document["mt-sv-mm"]["train_size"] == 250


def test_people_get_a_table():
    result = datasets()
    assert result.returncode == 0
    assert "shipped with scikit-learn" in result.stdout
    assert "office-10-{amazon,caltech,dslr,webcam}.npz" in result.stdout
    assert result.stderr == ""


def test_one_is_dealt_out_and_drawn(tmp_path):
    picture = tmp_path / "split.png"
    arguments = ("digits", "--clients", 5, "--partition", "ring:2", "--train-size", 50)
    result = datasets(*arguments, "--poison", "noise:4", "--plot", picture, "--json")
    assert result.returncode == 0, result.stderr
    clients = json.loads(result.stdout)["clients"]
    assert [list(map(int, client["labels"])) for client in clients] == [
        [i, i + 1] for i in range(5)
    ]
    assert [client["poisoned"] for client in clients] == [False] * 4 + [True]
    assert {client["train"] + client["validation"] for client in clients} == {50}
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_users_own_data_set_comes_by_plugin(tmp_path):
    (tmp_path / "my_data.py").write_text(PLUGIN)
    mine = ("--plugin", "my_data", "--json")
    result = datasets(*mine, cwd=tmp_path, run=in_a_process)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["squares"]["description"] == "Grey squares of mine"
    result = datasets("squares", "--clients", 4, *mine, cwd=tmp_path, run=in_a_process)
    assert result.returncode == 0, result.stderr
    assert [client["test"] for client in json.loads(result.stdout)["clients"]] == [10] * 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["digit"], "there is no data set named 'digit'"),
        (["digits", "--partition", "ring:11"], "from 1 to 10"),
        (["office-10"], "office-10/{amazon,caltech,dslr,webcam}/CLASS/*.jpg"),
        (["--plot", "x.png"], "name the data set first"),
        (["--data-dir", "/no/such/folder"], "there is no folder"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_2(arguments, sentence):
    result = datasets(*arguments)
    check_refused(result, sentence)
