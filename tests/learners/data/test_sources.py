"""Where images come from: shipped, rendered, blended, npz files, torchvision's layout."""

from __future__ import annotations

import bz2
import io
import os
import pickle
import time

import numpy as np
import pytest
from PIL import Image

from coalitions.errors import InvalidInputError, MissingDependencyError
from learners.data import files
from learners.data.clients import federated_data
from learners.data.dataset import DATASETS, Images
from learners.data.files import bundled, cache_folder, read_npz, read_picture
from learners.data.sources.digits import with_fixed_split
from learners.data.sources.domain_sets import blended
from learners.data.sources.synth_digits import FONTS, glyphs, rendered
from learners.settings.seeding import generator

ALL = {
    *("digits", "digits-domains", "mnist", "fashion-mnist", "cifar10", "cifar100", "svhn", "usps"),
    *("mnist-m", "synth-digits", "digit-5", "mt-sv-mm", "office-10"),
    *("digit-5-32", "office-10-32"),
}


def npz(path, n_train=40, n_test=20, shape=(6, 6), n_classes=10, **changed):
    rng = np.random.default_rng(0)
    arrays = {
        "x_train": rng.integers(0, 256, (n_train, *shape), dtype=np.uint8),
        "y_train": (np.arange(n_train) % n_classes).astype(np.uint8),
        "x_test": rng.integers(0, 256, (n_test, *shape), dtype=np.uint8),
        "y_test": (np.arange(n_test) % n_classes).astype(np.uint8),
    } | changed
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    return arrays


def test_all_names_of_the_interface_are_there():
    assert set(DATASETS) >= ALL


def test_digits_are_scikit_learns():
    from sklearn.datasets import load_digits

    ours, theirs = DATASETS["digits"]().load(None)[""], load_digits()
    pixels = np.concatenate([ours.train.pixels, ours.test.pixels])[..., 0]
    labels = np.concatenate([ours.train.labels, ours.test.labels])

    def table(images, labels):
        return sorted(zip(images.reshape(len(images), -1).tolist(), labels.tolist(), strict=True))

    assert table(np.rint(pixels / 255 * 16).astype(int), labels) == table(
        theirs.images.astype(int), theirs.target
    )
    assert (len(ours.train), len(ours.test)) == (1433, 364)


def test_a_fixed_split_takes_the_same_part_of_every_class():
    images = Images(np.zeros((100, 1, 1), np.uint8), np.repeat([0, 1, 2], [60, 30, 10]))
    parts = with_fixed_split(images, n_classes=3)
    assert np.bincount(parts.test.labels).tolist() == [12, 6, 2]
    assert np.bincount(parts.train.labels).tolist() == [48, 24, 8]


def test_synthetic_digits_are_balanced_and_repeatable():
    atlas = glyphs()
    assert atlas.shape[:2] == (len(FONTS), 10) == (22, 10)
    # Ten different glyphs in every font, none cut off at the rim of its cell.
    for font in atlas:
        assert len({glyph.tobytes() for glyph in font}) == 10
        assert font.max(axis=(1, 2)).min() > 0.9
    assert atlas[:, :, [0, -1]].max() == 0
    assert atlas[..., [0, -1]].max() == 0
    one, same = (rendered(200, atlas, generator(0, "x")) for _ in range(2))
    np.testing.assert_array_equal(one.pixels, same.pixels)
    assert one.shape == (3, 32, 32)
    assert np.bincount(one.labels).tolist() == [20] * 10
    assert len({picture.tobytes() for picture in one.pixels}) == 200


def test_a_classifier_learns_from_synthetic_digits_what_holds_for_new_ones():
    from sklearn.neighbors import KNeighborsClassifier

    atlas = glyphs()
    train = rendered(1500, atlas, generator(0, "train"))
    test = rendered(300, atlas, generator(0, "test"))

    def edges(images):  # without colour, a digit is where the brightness changes
        grey = images.pixels.mean(axis=3)
        steps = np.hypot(np.diff(grey, axis=1)[:, :, 1:], np.diff(grey, axis=2)[:, 1:])
        steps /= steps.std(axis=(1, 2), keepdims=True)
        return steps.reshape(len(grey), -1)

    model = KNeighborsClassifier(5).fit(edges(train), train.labels)
    assert model.score(edges(test), test.labels) > 0.4  # chance is 0.1


def test_mnist_m_is_the_difference_of_digit_and_photograph(rng):
    digits = Images(rng.integers(0, 256, (5, 28, 28), dtype=np.uint8), np.arange(5))
    grey = np.full((40, 50, 3), 100, np.uint8)
    blend = blended(digits, [grey], generator(0))
    assert blend.shape == (3, 32, 32)
    expected = np.abs(100 - digits.pixels.astype(int))
    np.testing.assert_array_equal(blend.pixels[:, 2:-2, 2:-2], np.repeat(expected, 3, axis=3))
    assert (blend.pixels[:, :2] == 100).all()
    np.testing.assert_array_equal(blend.labels, digits.labels)


def test_mnist_m_is_blended_if_only_mnist_is_there(tmp_path):
    npz(tmp_path / "mnist.npz", shape=(28, 28))
    source = DATASETS["mnist-m"]()
    assert source.origin(tmp_path)[0]
    images = source.load(tmp_path)[""]
    assert images.shape == (3, 32, 32)
    assert len({picture.tobytes() for picture in images.train.pixels}) == 40
    npz(tmp_path / "mnist-m.npz", shape=(32, 32, 3), n_train=50)
    assert len(source.load(tmp_path)[""].train) == 50


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y_test": None}, "x_train, y_train, x_test and y_test"),
        ({"x_train": np.zeros((40, 6, 6))}, "uint8"),
        ({"x_train": np.zeros((40, 6), np.uint8)}, "uint8"),
        ({"y_train": np.zeros(3, np.uint8)}, "as many whole labels"),
        ({"y_train": np.full(40, 10)}, "0 … 9"),
        ({"x_test": np.zeros((20, 5, 5), np.uint8)}, "one shape"),
        ({"x_train": np.array([None] * 40, dtype=object)}, "not an image set"),
    ],
)
def test_a_bad_archive_gets_one_sentence_with_its_name(tmp_path, changed, message):
    npz(tmp_path / "mnist.npz", **changed)
    with pytest.raises(InvalidInputError, match=message) as caught:
        DATASETS["mnist"]().load(tmp_path)
    assert "mnist.npz" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_archive_gets_one_sentence(tmp_path):
    array = io.BytesIO()
    np.save(array, np.zeros(3))
    for content in (b"", b"PK\x03\x04 broken", b"hello", array.getvalue()):
        (tmp_path / "usps.npz").write_bytes(content)
        with pytest.raises(InvalidInputError, match="not an image set"):
            DATASETS["usps"]().load(tmp_path)
    with pytest.raises(InvalidInputError, match="no file"):
        read_npz(tmp_path / "missing.npz", 10)


def test_an_archive_is_read_again_only_if_it_has_changed(tmp_path):
    path = tmp_path / "mnist.npz"
    npz(path)
    first = read_npz(path, 10)
    assert read_npz(path, 10) is first
    with pytest.raises(ValueError, match="read-only"):
        first.train.pixels[0] = 0
    npz(path, y_train=np.zeros(40, np.uint8))
    os.utime(path, ns=(0, 1))  # within the clock's last tick, too
    assert (read_npz(path, 10).train.labels == 0).all()
    with pytest.raises(InvalidInputError, match=r"mnist\.npz"):
        read_npz(path, 0)
    path.unlink()
    with pytest.raises(InvalidInputError, match="no file"):
        read_npz(path, 10)


def test_archives_are_kept_as_long_as_there_is_room(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_KEPT", {})
    paths = [tmp_path / f"{name}.npz" for name in "abc"]
    for path in paths:
        npz(path)
    size = sum(
        each.pixels.nbytes + each.labels.nbytes
        for images in [read_npz(paths[0], 10)]
        for each in (images.train, images.test)
    )
    monkeypatch.setattr(files, "ROOM", 2 * size)
    a, b = (read_npz(path, 10) for path in paths[:2])
    assert read_npz(paths[0], 10) is a  # so b is the oldest
    read_npz(paths[2], 10)
    assert read_npz(paths[0], 10) is a
    assert read_npz(paths[1], 10) is not b
    monkeypatch.setattr(files, "ROOM", 0)
    read_npz(paths[0], 10)
    assert files._KEPT == {}


def test_nothing_in_an_archive_is_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    trap = np.array([Trap()], dtype=object)
    np.savez(tmp_path / "mnist.npz", x_train=trap, y_train=trap, x_test=trap, y_test=trap)
    with pytest.raises(InvalidInputError):
        DATASETS["mnist"]().load(tmp_path)
    assert not (tmp_path / "sprung").exists()


# torchvision's own layout


def idx(path, array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    path.write_bytes(header + array.tobytes())


@pytest.mark.parametrize(
    ("name", "folder"), [("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")]
)
def test_mnists_own_files_are_read(tmp_path, rng, name, folder):
    raw = tmp_path / folder / "raw"
    raw.mkdir(parents=True)
    pixels = rng.integers(0, 256, (30, 28, 28), dtype=np.uint8)
    labels = (np.arange(30) % 10).astype(np.uint8)
    for part in ("train", "t10k"):
        idx(raw / f"{part}-images-idx3-ubyte", pixels)
        idx(raw / f"{part}-labels-idx1-ubyte", labels)
    source = DATASETS[name]()
    assert source.origin(tmp_path) == (True, f"torchvision's files in {tmp_path}")
    images = source.load(tmp_path)[""]
    np.testing.assert_array_equal(images.train.pixels[..., 0], pixels)
    np.testing.assert_array_equal(images.test.labels, labels)


def test_uspss_own_files_are_read(tmp_path):
    line = b"3 " + b" ".join(b"%d:%.1f" % (i + 1, i / 127.5 - 1) for i in range(256))
    for name in ("usps.bz2", "usps.t.bz2"):
        (tmp_path / name).write_bytes(bz2.compress(b"\n".join([line] * 4) + b"\n"))
    images = DATASETS["usps"]().load(tmp_path)[""]
    assert images.shape == (1, 16, 16)
    assert images.train.labels.tolist() == [2] * 4  # the file counts from 1
    assert images.train.pixels.min() == 0
    assert images.train.pixels.max() >= 250


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_cifars_own_files_are_read(tmp_path, rng, name, monkeypatch):
    from learners.data.sources.torchvision_sets import torchvision_module

    cifar = torchvision_module("datasets.cifar")
    monkeypatch.setattr(cifar, "check_integrity", lambda *_: True)  # these files are not the real
    kind = cifar.CIFAR10 if name == "cifar10" else cifar.CIFAR100
    folder = tmp_path / kind.base_folder
    folder.mkdir()
    pixels = rng.integers(0, 256, (10, 3, 32, 32), dtype=np.uint8)
    key = "labels" if name == "cifar10" else "fine_labels"
    for file, _ in kind.train_list + kind.test_list:
        batch = {"data": pixels.reshape(10, -1), key: list(range(10))}
        (folder / file).write_bytes(pickle.dumps(batch))
    (folder / kind.meta["filename"]).write_bytes(pickle.dumps({kind.meta["key"]: ["x"] * 100}))
    source = DATASETS[name]()
    assert source.origin(tmp_path)[0]
    images = source.load(tmp_path)[""]
    np.testing.assert_array_equal(images.test.pixels, pixels.transpose(0, 2, 3, 1))
    assert images.n_classes == (10 if name == "cifar10" else 100)


def test_svhns_own_files_are_read(tmp_path, rng, monkeypatch):
    from scipy.io import savemat

    from learners.data.sources.torchvision_sets import torchvision_module

    svhn = torchvision_module("datasets.svhn")
    monkeypatch.setattr(svhn.SVHN, "download", lambda self: None)
    monkeypatch.setattr(svhn.SVHN, "_check_integrity", lambda self: True)
    pixels = rng.integers(0, 256, (32, 32, 3, 10), dtype=np.uint8)
    for part in ("train", "test"):
        savemat(tmp_path / f"{part}_32x32.mat", {"X": pixels, "y": np.arange(1, 11)[:, None]})
    images = DATASETS["svhn"]().load(tmp_path)[""]
    np.testing.assert_array_equal(images.train.pixels, pixels.transpose(3, 0, 1, 2))
    assert images.train.labels.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]  # 10 stands for zero


@pytest.mark.parametrize("name", ["mnist", "cifar10", "svhn", "usps", "mnist-m", "mt-sv-mm"])
def test_what_is_missing_and_cannot_be_downloaded_gets_one_sentence(tmp_path, capsys, name):
    here, where = DATASETS[name]().origin(tmp_path)
    assert not here
    assert "download" in where
    with pytest.raises(InvalidInputError, match="--data-dir or COALITIONS_DATA") as caught:
        DATASETS[name]().load(tmp_path)
    assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""


def test_office_10_says_which_files_it_wants(tmp_path):
    for folder in (None, tmp_path):
        with pytest.raises(InvalidInputError, match=r"office-10-\{amazon,caltech,dslr,webcam\}"):
            DATASETS["office-10"]().load(folder)
    assert DATASETS["office-10"]().origin(None)[0] is False


def test_office_10_reads_folders_of_pictures(tmp_path, rng):
    for domain in ("amazon", "caltech", "dslr", "webcam"):
        for number in range(10):
            folder = tmp_path / "office-10" / domain / f"class_{number}"
            folder.mkdir(parents=True)
            for picture in range(4):
                size = (int(rng.integers(50, 90)), 70)
                Image.new("RGB", size, (25 * number, 0, 0)).save(folder / f"{picture}.png")
    data = federated_data("office-10", clients=4, partition="auto", seed=0, data_dir=tmp_path)
    assert data.shape == (3, 64, 64)
    half = federated_data("office-10-32", clients=4, partition="auto", seed=0, data_dir=tmp_path)
    assert half.shape == (3, 32, 32)
    assert (half.clients[1].test.targets == data.clients[1].test.targets).all()
    assert [client.domain for client in data.clients] == ["amazon", "caltech", "dslr", "webcam"]
    test = data.clients[0].test
    assert sorted(test.targets.tolist()) == list(range(10))
    red = (test.inputs[:, 0].mean(dim=(1, 2)) + 1) * 127.5
    np.testing.assert_allclose(red, 25 * test.targets, atol=0.5)
    (tmp_path / "office-10" / "dslr" / "class_3" / "0.png").write_bytes(b"no picture")
    with pytest.raises(InvalidInputError, match="not a readable picture"):
        DATASETS["office-10"]().load(tmp_path)


def test_files_of_missing_packages_and_folders():
    with pytest.raises(MissingDependencyError, match="no_such_package"):
        bundled("no_such_package", "file")
    with pytest.raises(InvalidInputError):
        read_picture(bundled("sklearn", "no_such.jpg"))
    assert cache_folder({"XDG_CACHE_HOME": "/c"}).as_posix() == "/c/coalitions"
    assert cache_folder({}).name == "coalitions"


# The real thing


@pytest.mark.parametrize(
    ("name", "sizes", "shape"),
    [
        ("mnist", (20000, 5000), (1, 28, 28)),
        ("usps", (7291, 2007), (1, 16, 16)),
        ("svhn", (6000, 2000), (3, 32, 32)),
        pytest.param("cifar100", (7000, 2000), (3, 32, 32), marks=pytest.mark.slow),
    ],
)
def test_real_archives(shared_data, name, sizes, shape):
    images = DATASETS[name]().load(shared_data)[""]
    assert (len(images.train), len(images.test)) == sizes
    assert images.shape == shape
    assert np.unique(images.train.labels).tolist() == list(range(images.n_classes))


def test_cffls_federation(shared_data):
    data = federated_data(
        "mt-sv-mm",
        clients=18,
        partition="domains:mnist=5,svhn=5,mnist-m=5,svhn=3",
        seed=0,
        poison=["wrong-labels:15,16,17"],
        data_dir=shared_data,
    )
    assert data.shape == (3, 28, 28)
    expected = ["mnist"] * 5 + ["svhn"] * 5 + ["mnist-m"] * 5 + ["svhn"] * 3
    assert [client.domain for client in data.clients] == expected
    assert [number for number, client in enumerate(data.clients) if client.poisoned] == [15, 16, 17]
    for client in data.clients:
        assert (len(client.train), len(client.validation), len(client.test)) == (200, 50, 50)
    mnist = data.clients[0].train.inputs
    assert (mnist[:, 0] == mnist[:, 2]).all()  # grey became colour


@pytest.mark.slow
def test_fedc2is_digits(shared_data):
    digits = federated_data("digit-5", clients=5, partition="auto", seed=0, data_dir=shared_data)
    assert digits.shape == (3, 64, 64)
    assert [len(c.train) + len(c.validation) for c in digits.clients] == [1000] * 5


def test_fedc2is_office(shared_data):
    office = federated_data(
        "office-10",
        clients=4,
        partition="domains",
        seed=0,
        train_size=[200, 200, 118, 197],
        test_size=[240, 281, 39, 76],
        data_dir=shared_data,
    )
    assert [len(c.train) + len(c.validation) for c in office.clients] == [200, 200, 118, 197]
    assert [len(c.test) for c in office.clients] == [240, 281, 39, 76]  # all there are


def test_mnist_for_a_hundred_clients_takes_no_time(shared_data):
    start = time.process_time()
    data = federated_data(
        "mnist", clients=100, partition="pathological:2", seed=0, data_dir=shared_data
    )
    assert time.process_time() - start < 4  # 0.3 s on a quiet core
    assert len(data.clients) == 100
