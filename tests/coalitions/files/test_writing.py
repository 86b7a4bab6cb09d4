"""Files that we write: whole or not at all, on disk before they are named, by one at a time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from coalitions import InvalidInputError
from coalitions.errors import StorageError
from coalitions.files.writing import atomic_write, held, require_room, write_json, write_whole


def test_a_file_that_could_not_be_finished_leaves_the_old_one_and_nothing_else(tmp_path):
    path = tmp_path / "graph.json"
    path.write_bytes(b"old")

    def interrupted():
        with atomic_write(path) as file:
            file.write(b"new, but")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["graph.json"]


def test_all_of_a_file_is_on_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    path = tmp_path / "proof.json"
    synced = []

    def fsync(descriptor):
        synced.append((os.fstat(descriptor).st_size, path.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_write(path) as file:
        file.write(b"x" * 5000)
    assert synced == [(5000, False)]


def test_a_device_is_written_to_not_replaced():
    write_json("/dev/null", {"a": 1})
    assert Path("/dev/null").is_char_device()


def test_json_says_the_same_without_what_a_terminal_obeys(tmp_path):
    document = {"änn\x1b[2J": ["\u202e", "\ud800", 1.5]}
    for indent in (2, None):
        write_json(tmp_path / "d.json", document, indent=indent)
        content = (tmp_path / "d.json").read_text()
        assert json.loads(content) == document
        assert all(character.isprintable() for line in content.split("\n") for character in line)
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "nan.json", float("nan"))
    assert not (tmp_path / "nan.json").exists()


def test_what_the_disk_has_no_room_for_is_not_begun(tmp_path):
    with pytest.raises(StorageError, match="make room"):
        require_room(tmp_path / "x", 1 << 60)
    write_whole(tmp_path / "x", b"a little")
    assert (tmp_path / "x").read_bytes() == b"a little"


def test_a_lock_ends_with_its_holder_and_needs_a_folder(tmp_path):
    with held(tmp_path / ".lock", "busy"):
        assert (tmp_path / ".lock").exists()
    assert not (tmp_path / ".lock").exists()
    with (
        pytest.raises(InvalidInputError, match="cannot be written"),
        held(tmp_path / "no" / "l", ""),
    ):
        pass
