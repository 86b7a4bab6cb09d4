"""Messages as records: they come back the same, and no stranger's lie is believed."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from coalitions.errors import InvalidInputError
from learners.flower.records import UnreadableError, from_records, to_records

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


def npy(header: dict, content: bytes) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + content


def reply(data: bytes, stype="numpy.ndarray", text="{}"):
    return RecordDict(
        {
            "tensors": ArrayRecord({"model": Array("float32", (1,), stype, data)}),
            "arrays": ArrayRecord(),
            "values": ConfigRecord({"json": text}),
        }
    )


FLOATS = {"descr": "<f4", "fortran_order": False, "shape": (2,)}
LIES = {
    "a shape of many gigabytes": reply(npy(FLOATS | {"shape": (1 << 40,)}, b"12345678")),
    "a shape beyond all integers": reply(npy(FLOATS | {"shape": (1 << 62, 1 << 62)}, b"12345678")),
    "a negative shape": reply(npy(FLOATS | {"shape": (-1, -2)}, b"12345678")),
    "a hundred axes": reply(npy(FLOATS | {"shape": (1,) * 99 + (2,)}, b"12345678")),
    "objects": reply(npy(FLOATS | {"descr": "|O"}, b"1" * 16)),
    "text": reply(npy(FLOATS | {"descr": "<U1"}, b"12345678")),
    "a record": reply(npy(FLOATS | {"descr": [("a", "<f4")]}, b"12345678")),
    "no header": reply(b"\x80\x04K\x01."),
    "nothing": reply(b""),
    "another writing": reply(npy(FLOATS, b"12345678"), stype="pickle"),
    "no JSON": reply(npy(FLOATS, b"12345678"), text="{"),
    "no table": reply(npy(FLOATS, b"12345678"), text="[]"),
    "JSON without end": reply(npy(FLOATS, b"12345678"), text="[" * 100_000),
    "an entry twice": reply(npy(FLOATS, b"12345678"), text='{"model": 1}'),
    "no records": RecordDict(),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_before_anything_is_as_large_as_it_claims(lie):
    with pytest.raises(UnreadableError):
        from_records(LIES[lie])


def test_more_bytes_than_a_reply_may_have_are_refused():
    records = to_records({"model": torch.zeros(1000)})
    assert len(from_records(records, 5000)["model"]) == 1000
    with pytest.raises(UnreadableError, match=r"4,1.. bytes, and 4,000 are the most"):
        from_records(records, 4000)
