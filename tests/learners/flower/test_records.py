"""Messages as records: they come back the same, and no stranger's lie is believed."""

from __future__ import annotations

import io
import resource
import time
import tracemalloc
import zipfile
from collections import Counter
from contextlib import nullcontext, suppress

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from coalitions.errors import InvalidInputError
from coalitions.files.arrays import ArrayArchive, ArrayFile
from learners.flower.questions import DONE, Outcome
from learners.flower.records import UnreadableError, from_records, to_records
from tests.learners.flower.hostile import OUTCOMES, REPLIES, fuzzed, with_array

TYPES = ["<f4", "<f8", ">f4", "<i8", "<i4", "|u1", "|b1", "<c8"]


@settings(max_examples=25)
@given(st.sampled_from(TYPES), arrays.array_shapes(min_dims=0, min_side=0, max_dims=3), st.data())
def test_arrays_and_tensors_come_back_as_they_were(dtype, shape, data):
    array = data.draw(arrays.arrays(np.dtype(dtype), shape))
    native = array.astype(array.dtype.newbyteorder("="))
    message = {
        "array": array,
        "tensor": torch.from_numpy(native),
        "fortran": array.copy(order="F"),
    }
    back = from_records(to_records(message))
    assert isinstance(back["tensor"], torch.Tensor)
    assert back["tensor"].dtype == message["tensor"].dtype
    for name in message:
        assert np.array_equal(np.asarray(back[name]), native, equal_nan=native.dtype.kind in "fc")
        assert np.asarray(back[name]).shape == array.shape


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
        max_size=4,
    )
)
def test_plain_values_come_back_with_their_types(message):
    assert repr(from_records(to_records(message))) == repr(message)


def test_what_no_record_can_hold_is_refused_at_the_sender():
    with pytest.raises(InvalidInputError, match="a message holds tensors"):
        to_records({"thing": object()})


def honest():
    """Return the records of a sound outcome."""
    reply = {"model": torch.zeros(2), "counts": np.arange(3), "samples": 2}
    return Outcome(DONE, reply, version="1.1").records()


READ = {"shape ()", "shape (1,)", "shape (3,)", f"shape (0, {2**60})"} | {
    "not a number",
    "half a character",
    "a deep table",
    "a number of 400 digits",
}
"""Kinds of a reply that are records of a message: what is wrong with it, its task's form says."""


@pytest.mark.parametrize("kind", REPLIES)
def test_a_hostile_reply_is_refused_before_anything_is_as_large_as_it_claims(kind):
    records = REPLIES[kind](honest())
    tracemalloc.start()
    try:
        with nullcontext() if kind in READ else pytest.raises(UnreadableError):
            from_records(records)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", OUTCOMES)
def test_a_hostile_outcome_is_read_or_refused_in_one_way(kind):
    with suppress(UnreadableError):
        Outcome.read(OUTCOMES[kind](honest()), 1 << 26)


def test_an_array_of_a_reply_can_be_written_into():
    back = from_records(to_records({"tensor": torch.zeros(2), "array": np.zeros(2)}))
    back["tensor"] += 1
    back["array"] += 1
    assert back["array"].tolist() == back["tensor"].tolist() == [1, 1]


# -- any array, by any of the three readers --------------------------------------------------------


def in_a_reply(data):
    return from_records(with_array(data)(honest()))["model"]


def in_a_file(data):
    return ArrayFile(io.BytesIO(data), "a.npy").load()


def in_an_archive(data):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("S.npy", data)
    (array,) = ArrayArchive(buffer, "a.npz").load("S")
    return array


WAYS = {
    in_a_reply: UnreadableError,
    in_a_file: InvalidInputError,
    in_an_archive: InvalidInputError,
}


def trial(n):
    """Read some fuzzed arrays in all ways; return how they ended, and the longest that one took."""
    ends, longest = Counter(), 0.0
    for number in range(n):
        data = fuzzed(number)
        for read, refusal in WAYS.items():
            began = time.process_time()
            try:
                array = read(data)
                assert np.asarray(array).nbytes <= len(data)
                ends[f"{read.__name__}: read"] += 1
            except refusal:
                ends[f"{read.__name__}: refused"] += 1
            longest = max(longest, time.process_time() - began)
    return ends, longest


def test_a_fuzzed_array_is_read_or_refused_with_one_kind_of_error():
    ends, longest = trial(500)
    assert min(ends.values()) > 10  # some are sound, and most are not
    assert longest < 1


@pytest.mark.slow
def test_twenty_thousand_fuzzed_arrays_are_read_or_refused(record_property):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ends, longest = trial(20_000)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    counts = {**ends, "longest in ms": round(1000 * longest), "MiB more": grown}
    record_property("counts: fuzzed arrays", {"20000": counts})
    print(counts)  # noqa: T201
    assert longest < 1
    assert grown < 1024


def test_more_bytes_than_a_reply_may_have_are_refused():
    records = to_records({"model": torch.zeros(1000)})
    assert len(from_records(records, 5000)["model"]) == 1000
    with pytest.raises(UnreadableError, match=r"4,1.. bytes, and 4,000 are the most"):
        from_records(records, 4000)
