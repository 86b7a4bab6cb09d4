"""The picture of the split."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from cli.report.data_pictures import draw_split, label_counts
from coalitions.errors import InvalidInputError
from learners.data.clients import federated_data


def test_counts_are_those_of_the_training_data():
    data = federated_data("digits", clients=4, partition="ring:3", seed=0)
    counts = label_counts(data)
    assert counts.shape == (4, 10)
    assert (counts > 0).tolist() == [[(c - i) % 10 < 3 for c in range(10)] for i in range(4)]
    assert counts.sum(axis=1).tolist() == [len(client.train) for client in data.clients]


def test_the_picture_has_one_dot_per_label_and_client_and_repeats(tmp_path):
    data = federated_data("digits", clients=6, partition="ring:2", seed=0)
    for name in ("one.svg", "two.svg"):
        draw_split(data, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    svg = ElementTree.parse(tmp_path / "one.svg")
    dots = svg.find(".//*[@id='PathCollection_1']")
    assert dots is not None
    filled = [dot for dot in dots.iter() if "#0072b2" in dot.get("style", "")]
    assert len(filled) == 12


def test_domains_and_poison_are_coloured(tmp_path):
    data = federated_data(
        "digits-domains", clients=5, partition="domains", seed=0, poison=["noise:4"]
    )
    draw_split(data, tmp_path / "split.png")
    with Image.open(tmp_path / "split.png") as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(10**7)}
    assert {(0, 114, 178), (230, 159, 0), (0, 158, 115), (213, 94, 0)} <= colours


def test_many_clients_fit(tmp_path):
    data = federated_data("digits", clients=150, partition="iid", seed=0)
    draw_split(data, tmp_path / "split.png")
    with Image.open(tmp_path / "split.png") as picture:
        assert max(np.shape(picture)) < 3000


def test_other_endings_get_one_sentence(tmp_path):
    data = federated_data("digits", clients=2, partition="iid", seed=0)
    with pytest.raises(InvalidInputError, match=r"\.png, \.svg, \.pdf"):
        draw_split(data, tmp_path / "split.gif")
    with pytest.raises(InvalidInputError, match="cannot be written"):
        draw_split(data, tmp_path / "missing" / "split.png")
