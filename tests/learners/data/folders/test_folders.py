"""One folder a client: arrays, tables, pictures, and what is wrong with them."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from PIL import Image

from coalitions.errors import InvalidInputError
from learners.data.own.encode_table import TableSettings, encode_table
from learners.data.own.folders import (
    folder_checksum,
    layout_of,
    read_array_clients,
    read_picture_clients,
    read_table_clients,
    read_two_tables,
)
from learners.data.own.paths import PathSettings, read_path


def save(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


@pytest.fixture
def arrays(tmp_path):
    """Two clients with arrays."""
    rng = np.random.default_rng(0)
    for client in ("ann", "bob"):
        for part, n in (("train", 12), ("test", 4)):
            x = rng.normal(size=(n, 3))
            save(tmp_path / client / f"{part}.npz", x=x, y=np.arange(n) % 2)
    return tmp_path


@pytest.fixture
def pictures(tmp_path):
    """Two clients with pictures of two classes."""
    for client in ("ann", "bob"):
        for label in ("cat", "dog"):
            (tmp_path / client / label).mkdir(parents=True)
            for k in range(5):
                grey = np.full((6, 8), 255 * (label == "dog"), dtype=np.uint8)
                Image.fromarray(grey).save(tmp_path / client / label / f"{k}.png")
    return tmp_path


def test_arrays_are_read_by_client(arrays):
    clients = read_array_clients(layout_of(arrays))
    assert list(clients) == ["ann", "bob"]
    (inputs, targets), (_, tested) = clients["bob"]
    assert {name: (x.shape, x.dtype) for name, x in inputs.items()} == {
        "inputs": ((12, 3), np.float32)
    }
    assert len(targets) == 12
    assert len(tested) == 4


def test_several_arrays_keep_their_names_and_bytes_become_pictures(tmp_path):
    for part in ("train", "test"):
        save(
            tmp_path / "ann" / f"{part}.npz",
            scan=np.full((5, 4, 6), 255, dtype=np.uint8),
            words=np.zeros((5, 7), dtype=np.int32),
            targets=np.array(["a", "b", "a", "b", "a"]),
        )
    ((inputs, _), _) = read_array_clients(layout_of(tmp_path))["ann"]
    assert inputs["scan"].shape == (5, 1, 4, 6)
    assert (inputs["scan"] == 1).all()
    assert inputs["words"].dtype == np.int64


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda at: (at / "bob/test.npz").unlink(), "client 'bob' has no test data"),
        (lambda at: save(at / "bob/test.npz", x=np.ones((3, 2)), y=np.ones(3, int)), "[N, 2]"),
        (lambda at: save(at / "bob/test.npz", z=np.ones((3, 3)), y=np.ones(3, int)), "differs"),
        (lambda at: save(at / "bob/test.npz", x=np.ones((3, 3)), y=np.ones(2)), "y has 2"),
        (lambda at: save(at / "bob/test.npz", x=np.ones((3, 3)), y=np.ones(3)), "float64 [N]"),
        (lambda at: save(at / "bob/test.npz", x=np.ones((3, 3))), "no array for the targets"),
        (lambda at: save(at / "bob/test.npz", y=np.ones(3)), "no inputs such as x"),
        (
            lambda at: save(at / "bob/test.npz", x=np.full((3, 3), np.nan), y=np.ones(3, int)),
            "x of client 'bob' is not finite in row 0",
        ),
        (
            lambda at: save(at / "bob/test.npz", x=np.array([{}], object), y=np.ones(1, int)),
            "objects are never loaded",
        ),
        (lambda at: save(at / "bob/test.npz", x=np.ones((0, 3)), y=np.ones(0)), "has no samples"),
        (lambda at: (at / "bob/test.npz").write_bytes(b"PK\x03\x04"), "damaged"),
        (lambda at: (at / "carl").mkdir(), "no data of this client"),
    ],
)
def test_bad_arrays_get_one_sentence_that_names_the_client(arrays, break_it, message):
    break_it(arrays)
    with pytest.raises(InvalidInputError) as error:
        read_array_clients(layout_of(arrays))
    assert message in str(error.value)
    assert "bob" in str(error.value) or "carl" in str(error.value)


def test_a_client_is_not_said_to_differ_from_itself(arrays):
    save(arrays / "ann/test.npz", x=np.ones((3, 2)), y=np.ones(3, int))
    form = r"float32 \[N, 2\], that of its train.npz float32 \[N, 3\]"
    with pytest.raises(InvalidInputError, match=f"test.npz: inputs of client 'ann' is {form}"):
        read_array_clients(layout_of(arrays))


def test_pictures_are_read_by_class_and_some_are_set_aside_for_the_test(pictures):
    dealt = read_picture_clients(layout_of(pictures), seed=0, test_size=None)
    assert dealt.classes == ("cat", "dog")
    (inputs, labels), (_, tested) = dealt.clients["ann"]
    assert inputs["inputs"].shape == (8, 1, 6, 8)
    assert (inputs["inputs"][labels == 1] == 1).all()
    assert (inputs["inputs"][labels == 0] == -1).all()
    assert sorted(tested.tolist()) == [0, 1]
    assert dealt.told == ("test pictures drawn in each client",)


def test_pictures_of_another_size_are_resized_and_that_is_said(pictures):
    Image.new("RGB", (20, 20)).save(pictures / "bob" / "cat" / "0.png")
    dealt = read_picture_clients(layout_of(pictures), seed=0, test_size=None)
    assert dealt.clients["ann"][0][0]["inputs"].shape[1:] == (3, 6, 8)
    assert dealt.told[0] == "1 of 20 pictures resized to 8×6"


def test_folders_train_and_test_say_what_is_what(tmp_path, pictures):
    for client in ("ann", "bob"):
        inner = pictures / client
        shutil.copytree(inner, tmp_path / "new" / client / "train")
        shutil.copytree(inner / "cat", tmp_path / "new" / client / "test" / "cat")
    dealt = read_picture_clients(layout_of(tmp_path / "new"), seed=0, test_size=None)
    assert [len(part[1]) for part in dealt.clients["ann"]] == [10, 5]
    shutil.rmtree(tmp_path / "new" / "bob" / "test")
    with pytest.raises(InvalidInputError, match="client 'bob' has no test folder"):
        read_picture_clients(layout_of(tmp_path / "new"), seed=0, test_size=None)


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda at: (at / "bob/cat/0.png").write_bytes(b"no"), "not a readable picture"),
        (lambda at: (at / "bob/eel").mkdir(), "no picture of this class"),
        (lambda at: shutil.rmtree(at / "bob/cat") or shutil.rmtree(at / "bob/dog"), "no data"),
        (lambda at: save(at / "carl/train.npz", x=np.ones(3)), "has arrays"),
    ],
)
def test_bad_pictures_get_one_sentence(pictures, break_it, message):
    break_it(pictures)
    with pytest.raises(InvalidInputError) as error:
        read_picture_clients(layout_of(pictures), seed=0, test_size=None)
    assert message in str(error.value)


ROWS = "x,word,y\n" + "1.5,a,0\n2.5,b,1\n" * 5


def test_every_client_may_have_a_table_of_its_own(tmp_path):
    for client in ("ann", "bob"):
        (tmp_path / client).mkdir()
        (tmp_path / client / "train.csv").write_text(ROWS)
    owners = read_table_clients(layout_of(tmp_path))
    dealt = encode_table(owners, TableSettings("y"))
    assert list(dealt.clients) == ["ann", "bob"]
    assert [len(test[1]) for _, test in dealt.clients.values()] == [2, 2]
    (tmp_path / "bob" / "test.csv").write_text(ROWS)
    with pytest.raises(InvalidInputError, match="client 'ann' has no test data"):
        read_table_clients(layout_of(tmp_path))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (ROWS.replace("word", "wrd"), "client 'bob' has no column 'word'"),
        (ROWS.replace("x,word", "x,extra").replace("\n1", "\n1"), "no column 'word'"),
        (ROWS.replace("1.5", "high"), "'x' has numbers at client 'ann' and texts at client 'bob'"),
    ],
)
def test_columns_that_differ_between_clients_are_refused(tmp_path, table, message):
    for client, content in (("ann", ROWS), ("bob", table)):
        (tmp_path / client).mkdir()
        (tmp_path / client / "train.csv").write_text(content)
    with pytest.raises(InvalidInputError) as error:
        encode_table(read_table_clients(layout_of(tmp_path)), TableSettings("y"))
    assert message in str(error.value)


def test_two_tables_for_all_clients_are_training_and_test(tmp_path):
    rows = "who,x,y\n" + "a,1,0\na,2,1\nb,1,1\nb,2,0\n" * 3
    for part in ("train", "test"):
        (tmp_path / f"{part}.csv").write_text(rows)
    owners = read_two_tables(layout_of(tmp_path), "who")
    dealt = encode_table(owners, TableSettings("y", "who"))
    assert [len(part[1]) for part in dealt.clients["a"]] == [6, 6]
    (tmp_path / "test.csv").write_text(rows.replace("b,", "a,"))
    with pytest.raises(InvalidInputError, match="client 'b' has no test rows"):
        read_two_tables(layout_of(tmp_path), "who")


def test_a_checksum_stands_for_names_and_bytes(arrays):
    before = folder_checksum(layout_of(arrays))
    (arrays / ".hidden").write_text("nothing")
    assert folder_checksum(layout_of(arrays)) == before
    (arrays / "ann").rename(arrays / "carl")
    assert folder_checksum(layout_of(arrays)) != before


def test_an_empty_folder_says_what_is_wanted(tmp_path):
    with pytest.raises(InvalidInputError, match=r"one folder for each, with train\.npz"):
        layout_of(tmp_path)


def test_the_sentence_on_tables_in_folders_names_the_folder_of_all(tmp_path):
    for name in ("ann", "bob"):
        (tmp_path / name).mkdir()
        rows = [f"{k * 7 % 10 + k / 10},{k % 2}" for k in range(20)]
        (tmp_path / name / "train.csv").write_text("\n".join(["a,y", *rows]))
    told = read_path(PathSettings(tmp_path, target="y")).told
    assert told.startswith(f"{tmp_path}: 40 rows of 2 clients")
