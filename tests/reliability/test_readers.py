"""Whatever a file holds, its reader ends soon, in little memory, with a result or a sentence."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from coalitions import CoalitionError, InputWarning, InvalidInputError, SynergyGraph, TableGame
from coalitions.files.graphs import READERS
from coalitions.graph import Treatment
from tests.reliability.command_lines import ended, line, prepare
from tests.reliability.fuzz import Report, cases, readers, tried

pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

NAMES = [
    ".csv", ".tsv", ".npy", ".npz", ".json", ".graphml", ".edges", "2^n table", "certificate",
    "solution", "config.toml", "options", "NAME.npz", "metrics.jsonl", "result.json",
    "clients.json", "structures.jsonl", "relevance.npy", "checkpoint",
]  # fmt: skip
FULL = int(200_000 * float(os.environ.get("COALITIONS_SOAK", "1")))
"""Inputs of the long trial, over all readers."""


@pytest.fixture(scope="module")
def all_readers(tmp_path_factory):
    found = {each.name: each for each in readers(tmp_path_factory.mktemp("files"))}
    assert list(found) == NAMES
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_takes_its_valid_files(all_readers, name):
    for seed in all_readers[name].seeds:
        all_readers[name].read(seed)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_end_in_a_sentence(all_readers, name, record_property):
    report = Report()
    tried(all_readers[name], cases(all_readers[name], 250), report)
    record_property("counts: readers", {key: dict(n) for key, n in report.counts.items()})
    assert not report.failures, "\n".join(report.failures)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", NAMES)
def test_two_hundred_thousand_damaged_files_end_in_sentences(all_readers, name, record_property):
    report = Report()
    tried(all_readers[name], cases(all_readers[name], -(-FULL // len(NAMES))), report)
    record_property("counts: readers", {key: dict(n) for key, n in report.counts.items()})
    assert not report.failures, "\n".join(report.failures)


# -- any text, any document, any arrays ------------------------------------------------------------


def reads(kind: str, content: bytes) -> None:
    with contextlib.suppress(CoalitionError, InputWarning):
        READERS[kind](io.BytesIO(content), f"graph.{kind}", Treatment())


@settings(max_examples=60)
@given(st.sampled_from(["csv", "tsv", "edges", "json", "graphml"]), st.text(), st.booleans())
def test_any_text_is_read_or_refused(kind, text, wide):
    reads(kind, text.encode("utf-16" if wide else "utf-8", "surrogatepass"))


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=60)
@given(
    st.dictionaries(st.sampled_from(["matrix", "edges", "labels", "values"]), documents, min_size=1)
)
def test_any_document_is_read_or_refused(document):
    reads("json", json.dumps(document).encode())
    with contextlib.suppress(CoalitionError):
        TableGame.from_document(json.loads(json.dumps(document)), "t.json")


arrays = hnp.arrays(
    hnp.scalar_dtypes() | hnp.unicode_string_dtypes() | hnp.byte_string_dtypes(),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(["S", "n_players", "i", "j", "weight", "labels"]), arrays))
def test_any_arrays_are_read_or_refused(found):
    buffer = io.BytesIO()
    np.savez(buffer, **found)
    reads("npz", buffer.getvalue())
    for array in found.values():
        buffer = io.BytesIO()
        np.save(buffer, array)
        reads("npy", buffer.getvalue())


# -- what was found, one by one --------------------------------------------------------------------


def npz(**found: object) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **found)
    return buffer.getvalue()


def npy_header(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    buffer = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, about)
    return buffer.getvalue()


def damaged_npz() -> bytes:
    content = bytearray(npz(S=np.arange(9.0).reshape(3, 3)))
    content[60] ^= 0xFF
    return bytes(content)


def lying_npz() -> bytes:
    """Return an archive whose array says that it is far larger than it is."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("S.npy", npy_header((4000, 4000)) + b"\0" * 64)
    return buffer.getvalue()


def packed_npz() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("S.npy", npy_header((2, 2)) + b"\0" * 32)
    return buffer.getvalue()


ENTITY = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x [<!ENTITY a "b">]><graphml/>'
BAD = {
    "a billion players": ("npz", npz(n_players=10**9, i=[0], j=[1], weight=[1.0]), "too many"),
    "players that are text": (
        "npz",
        npz(n_players="x", i=[0], j=[1], weight=[1.0]),
        "whole number",
    ),
    "a damaged archive": ("npz", damaged_npz(), "is damaged"),
    "an archive cut short": ("npz", npz(S=np.zeros((3, 3)))[:-30], "is damaged"),
    "an array that says it is larger": ("npz", lying_npz(), "is cut short"),
    "a header that says it is larger": ("npy", npy_header((8000, 8000)), "is cut short"),
    "an archive packed by bzip2": ("npz", packed_npz(), "as NumPy does not pack"),
    "a matrix that is too large": ("npy", npy_header((20000, 20000)), r"as \.edges, as \.npz"),
    "a bomb of small numbers": (
        "npz",
        npz(
            n_players=10**6,
            i=np.zeros(11_000_000, np.int8),
            j=np.ones(11_000_000, np.int8),
            weight=np.ones(11_000_000, np.int8),
        ),
        "to 264,000,000 bytes",
    ),
    "a bomb": ("npz", npz(S=np.zeros((6000, 6000))), "100 times its size"),
    "text": ("npy", npy_header((1, 1), "<U1") + b"\xff\xff\xff\xff", "not numeric"),
    "complex numbers": ("npz", npz(S=np.zeros((2, 2), complex)), "not numeric"),
    "an infinite shape": ("npy", npy_header((0, 10**30)), "in a shape that an array can have"),
    "a long field": ("csv", b'0,"' + b"x" * 200_000, "quotation mark"),
    "deep JSON": ("json", b'{"matrix":' + b"[" * 100_000, "nested too deeply"),
    "5000 digits": ("json", b'{"matrix":[[' + b"9" * 5000 + b"]]}", "more than 4300 digits"),
    "400 digits in a matrix": ("json", b'{"matrix":[[' + b"9" * 400 + b"]]}", "not numeric"),
    "400 digits in an edge": ("json", b'{"edges":[["a","b",' + b"9" * 400 + b"]]}", "finite"),
    "half a character": ("json", b'{"labels":["\\ud800"],"matrix":[[0]]}', "is not text"),
    "an unknown encoding": ("graphml", b'<?xml version="1.0" encoding="x"?><graphml/>', "GraphML"),
    "entities in UTF-16": ("graphml", ENTITY.encode("utf-16"), "XML entities"),
    "a broken mark": ("csv", b"\xff\xfe\x00", "save it as UTF-8"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_ended_in_a_catch_all_or_in_all_memory_gets_a_sentence(name):
    kind, content, sentence = BAD[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InvalidInputError, match=sentence) as caught:
        READERS[kind](io.BytesIO(content), f"graph.{kind}", Treatment())
    assert str(caught.value).startswith(f"graph.{kind}: ")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB


def test_an_array_that_nobody_asked_for_stays_packed(tmp_path):
    path = tmp_path / "graph.npz"
    path.write_bytes(npz(S=np.zeros((2, 2)), unused=np.zeros(10**7)))
    tracemalloc.start()
    try:
        assert SynergyGraph.read(path).n_players == 2
        assert tracemalloc.get_traced_memory()[1] < 2e7  # the array has 8e7 bytes
    finally:
        tracemalloc.stop()


def test_a_dense_file_that_is_too_large_is_refused_by_its_header(tmp_path):
    path = tmp_path / "large.npy"
    header = npy_header((20000, 20000))
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + 20000 * 20000 * 8)  # a hole: it takes no disk
    with pytest.raises(InvalidInputError, match=r"3\.2 GB, more than once; above 8000 players"):
        SynergyGraph.read(path)


TABLE = ",änn,bob\nänn,0,1\nbob,1,0\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_what_spreadsheets_export_is_read(tmp_path, end, encoding):
    path = tmp_path / "graph.csv"
    path.write_bytes(TABLE.replace("\n", end).encode(encoding))
    graph = SynergyGraph.read(path)
    assert graph.labels == ("änn", "bob")
    assert graph.matrix[0, 1] == 1
    path = tmp_path / "graph.edges"
    path.write_bytes(f"änn bob 2{end}bob cleo 1{end}".encode(encoding))
    assert SynergyGraph.read(path).labels == ("änn", "bob", "cleo")


def test_names_that_are_bytes_are_decoded():
    content = npz(S=np.zeros((2, 2)), labels=np.array([b"ann", b"bob"]))
    assert READERS["npz"](io.BytesIO(content), "graph.npz", Treatment()).labels == ("ann", "bob")


@pytest.mark.parametrize("large", [False, True])
def test_a_graph_is_read_back_packed_or_not(tmp_path, monkeypatch, large):
    monkeypatch.setattr("coalitions.files.graphs.FREELY_UNPACKED", 0 if large else 1 << 20)
    path = tmp_path / "graph.npz"
    SynergyGraph(np.zeros((200, 200))).write(path)
    assert (path.stat().st_size > 200 * 200 * 8) == large
    assert SynergyGraph.read(path).n_players == 200


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a = " + "[" * 5000, "lists are too deep"),
        ("a." * 30_000 + "a = 1", "too long or too deep"),
        ("# " + "x" * 70_000, "too long or too deep"),
        ("seed = " + "9" * 5000, "4300 digits"),
        ("seed = 0x" + "f" * 6000, "seed can be 9.22337e\\+18 at most"),
        ("lr = " + "9" * 400, "can be 3.4e\\+38 at most"),
        ("lr = 1e300", "lr can be 3.4e\\+38 at most"),
        ("lr = 1e400", "lr must be a positive number, not inf"),
        ("poison = [" + "[" * 100 + "]" * 100 + "]", "must be text"),
    ],
)
def test_settings_that_nobody_means_get_a_sentence(tmp_path, text, sentence):
    from learners.settings.config import RunConfig

    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=sentence) as caught:
        RunConfig.read(path)
    assert len(str(caught.value)) < 1000


def test_more_clients_than_images_are_refused_at_once():
    from learners.data.clients import federated_data

    with pytest.raises(InvalidInputError, match="1000000000 clients are too many"):
        federated_data("digits", clients=10**9, partition="iid", seed=0)


# -- command lines ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed",
    [
        ["solve", "graph.csv", "--output", ""],
        ["solve", "graph.csv", "--certificate", ""],
        ["solve", "graph.csv", "--plugin", ""],
        ["solve", "graph.csv", "--plugin", "."],
        ["solve", "a\0b.csv"],
        ["solve", "graph.csv", "--output", "\0"],
        ["run", "--dataset", "nowhere", "--lr", "1e300"],
        ["run", "--dataset", "nowhere", "--rounds", "9" * 400],
    ],
)
def test_an_odd_command_line_ends_with_code_2(tmp_path, monkeypatch, capsys, typed):
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert ended(typed, capsys, codes=(2,)) == ""
    assert {path.name for path in tmp_path.iterdir()} == {"graph.csv", "s.json"}


def hostile_lines(tmp_path, monkeypatch, capsys, numbers):
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    wrong = [end for end in (ended(line(number), capsys) for number in numbers) if end]
    assert not wrong, "\n".join(wrong[:20])


def test_hostile_command_lines_end_in_a_sentence(tmp_path, monkeypatch, capsys):
    hostile_lines(tmp_path, monkeypatch, capsys, range(60))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_ten_thousand_hostile_command_lines_end_in_a_sentence(
    tmp_path, monkeypatch, capsys, record_property
):
    numbers = range(FULL // 20)
    hostile_lines(tmp_path, monkeypatch, capsys, numbers)
    record_property("counts: command lines", {"typed": {"ended well": len(numbers)}})
