"""What a stranger may send in place of a reply: odd arrays, odd records and odd words about them.

``REPLIES`` and ``OUTCOMES`` map the name of a kind to what makes it from the records of an honest
reply.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

CONTENT = b"12345678"
SOUND = {"descr": "'<f4'", "fortran_order": "False", "shape": "(2,)"}

LONG = {"'<f16'": 32, "'<c32'": 64, "'<f12'": 24, "'|O'": 16, "'<M8[s]'": 16, "'<f3'": 6}
"""Bytes of two elements, where those are not eight: so that nothing but the type is odd."""

DESCRS = [
    "'<f16'", "'<c32'", "'<f12'", "'|O'", "'<U2'", "'|S4'", "'|V4'", "'<M8[s]'", "'<m8[7x]'",
    "'<f3'", "'<f0'", "'<U0'", "'<U999999999'", "''", "'f4,f4'", "'(2,)f4'", "[('a', '<f4')]",
    "None", "3", "b'<f4'", "'<f4' * 2", "float",
]  # fmt: skip
ROOM = {"(True,)": 4, f"(0, {10**23})": 0, f"(0, {2**62}, {2**62})": 0, f"(0, {2**60})": 0,
        "()": 4, "(1,)": 4, "(3,)": 12, "(0, -1)": 0}  # fmt: skip
"""Bytes behind a shape, where those are not eight."""

SHAPES = [
    "(True,)", f"(0, {10**23})", "(0, 2**62, 2**62)", f"(0, {2**62}, {2**62})", f"({10**23},)",
    f"({2**62}, {2**62})", f"({2**63},)", f"({2**40},)", "(-1,)", "(-1, -2)", "(0, -1)", "(2.0,)",
    "('2',)", "(None,)", "[2]", "2", "None", "((2,),)", f"({'1, ' * 16}2)", f"({'1,' * 4000})",
    f"({'9' * 5000},)", "(3,)", "(1,)", "()", f"(0, {2**60})",
]  # fmt: skip
ORDERS = ["None", "1", "'C'"]
HEADERS = {
    "8999 parentheses": "(" * 8999,
    "8999 signs": "-" * 8999,
    "a word again and again": "not " * 2000,
    "nothing": "",
    "an empty table": "{}",
    "an entry too few": "{'descr': '<f4', 'shape': (2,)}",
    "an entry too many": "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
    "a call": "{'descr': '<f4', 'fortran_order': False, 'shape': (len('ab'),)}",
    "a large power": "9**9**9",
    "half a text": "{'descr': '<f4",
    "a zero byte": "{'descr': '<f4'\0}",
    "an escape": "{'descr': '\\N{x}', 'fortran_order': False, 'shape': (2,)}",
    "no Latin letters": "{'descr': '\xff\xfe', 'fortran_order': False, 'shape': (2,)}",
}


def npy(header: str, version: bytes = b"\1\0", content: bytes = CONTENT) -> bytes:
    """Return a .npy file with any header."""
    text = header.encode("latin-1")
    width = 2 if version == b"\1\0" else 4
    return b"\x93NUMPY" + version + len(text).to_bytes(width, "little") + text + content


def header(**entries: str) -> str:
    """Return a header, in NumPy's form, of entries as Python would write them."""
    return "{" + "".join(f"'{name}': {value}, " for name, value in (SOUND | entries).items()) + "}"


ARRAYS: dict[str, bytes] = {
    **{f"descr {each[:30]}": npy(header(descr=each), content=bytes(LONG.get(each, 8)))
       for each in DESCRS},
    **{f"shape {each[:30]}": npy(header(shape=each), content=bytes(ROOM.get(each, 8)))
       for each in SHAPES},
    **{f"order {each}": npy(header(fortran_order=each)) for each in ORDERS},
    **{f"a header of {name}": npy(text) for name, text in HEADERS.items()},
    "no bytes": b"",
    "a pickle": b"\x80\x04K\x01.",
    "the beginning alone": b"\x93NUMPY",
    "half a length": b"\x93NUMPY\1\0\x10",
    "version 3": npy(header(), b"\3\0"),
    "version 9.9": npy(header(), b"\x09\x09"),
    "a header of 4 GB": b"\x93NUMPY\2\0\xff\xff\xff\xff" + CONTENT,
    "too few numbers": npy(header(), content=b"1234"),
    "too many numbers": npy(header(), content=CONTENT * 2),
    "a table of files": b"PK\3\4" + CONTENT,
}  # fmt: skip


def with_array(data: bytes, stype: str = "numpy.ndarray") -> Callable[[RecordDict], RecordDict]:
    """Return what puts a file in place of every tensor."""

    def tamper(records: RecordDict) -> RecordDict:
        for name in records["tensors"]:
            records["tensors"][name] = Array("float32", (2,), stype, data)
        return records

    return tamper


def with_values(text: str) -> Callable[[RecordDict], RecordDict]:
    """Return what puts a text in place of a reply's values."""

    def tamper(records: RecordDict) -> RecordDict:
        records["values"] = ConfigRecord({"json": text})
        return records

    return tamper


def without(place: str) -> Callable[[RecordDict], RecordDict]:
    """Return what leaves a record out."""
    return lambda records: RecordDict({k: v for k, v in records.items() if k != place})


def _twice(records: RecordDict) -> RecordDict:
    return with_values(json.dumps(dict.fromkeys(records["tensors"], 1)))(records)


def _many(records: RecordDict) -> RecordDict:
    one = Array("float32", (2,), "numpy.ndarray", npy(header()))
    records["tensors"] = ArrayRecord({f"entry {k}": one for k in range(10_001)})
    return records


REPLIES: dict[str, Callable[[RecordDict], RecordDict]] = {
    **{name: with_array(data) for name, data in ARRAYS.items()},
    "another writing": with_array(npy(header()), "pickle"),
    "no tensors": without("tensors"),
    "no values": without("values"),
    "values that are no JSON": with_values("{"),
    "values that are no table": with_values("[]"),
    "values without end": with_values("[" * 100_000),
    "a number of 5000 digits": with_values('{"samples": ' + "9" * 5000 + "}"),
    "a number of 400 digits": with_values('{"samples": ' + "9" * 400 + "}"),
    "not a number": with_values('{"samples": NaN, "train_loss": Infinity}'),
    "half a character": with_values('{"\\ud800": "\\udfff"}'),
    "a deep table": with_values('{"samples": ' + "[" * 500 + "]" * 500 + "}"),
    "an entry twice": _twice,
    "too many entries": _many,
    "no records": lambda records: RecordDict(),
}  # fmt: skip

ANSWER = {"status": "done", "reason": "", "version": "", "books": {}, "client": 0}
RELEASES, STEPS, RATE = "privacy releases", "privacy steps", "privacy rate"
ANSWERS: dict[str, object] = {
    **{f"status {each!r:.20}": ANSWER | {"status": each}
       for each in (None, 1, [], {}, "", "don", "refused", "lost", "hello", "ends", ["done"])},
    **{f"client {each!r:.20}": ANSWER | {"client": each}
       for each in (None, "0", 0.0, True, [], -1, 10**30, 10**400)},
    **{f"version {each!r:.20}": ANSWER | {"version": each}
       for each in (None, 1, [], {}, "../../etc", "x" * 60_000, "1.1\0", "1.\u0661")},
    **{f"books {each!s:.60}": ANSWER | {"books": each}
       for each in (None, [], 1, "x", {RELEASES: 10**400}, {RELEASES: -1}, {RELEASES: 1.5},
                    {RELEASES: True}, {RELEASES: 10**15}, {RELEASES: "1"}, {STEPS: -5},
                    {RATE: 0}, {RATE: -1}, {RATE: 1e-320}, {RATE: 2}, {RATE: float("nan")},
                    {RATE: None}, {"another": 1})},
    **{f"reason {each!r:.20}": ANSWER | {"reason": each, "status": "refused"}
       for each in (None, 1, [], {"a": 1}, "x" * 60_000, "\x1b[31m", "\ud800")},
    "a list": [1], "a text": "done", "nothing": None, "an empty table": {},
}  # fmt: skip


def answering(text: object) -> Callable[[RecordDict], RecordDict]:
    """Return what puts a text in place of what a node says came of a question."""

    def tamper(records: RecordDict) -> RecordDict:
        records["answer"] = ConfigRecord({"json": text})
        return records

    return tamper


OUTCOMES: dict[str, Callable[[RecordDict], RecordDict]] = {
    **REPLIES,
    **{f"an answer of {name}": answering(json.dumps(each)) for name, each in ANSWERS.items()},
    "an answer that is no JSON": answering("{"),
    "an answer without end": answering("[" * 60_000),
    "an answer of bytes": answering(b"{}"),
    "an answer of numbers": answering([1, 2]),
    "no answer": without("answer"),
}


def fuzzed(number: int) -> bytes:
    """Return a .npy file with something wrong, or nothing: the same one for a number every time."""
    rng = random.Random(f"array {number}")
    odd = {"descr": DESCRS, "shape": SHAPES, "fortran_order": ORDERS}
    kind, size = rng.choice("biuuffcSUmM"), rng.choice([1, 2, 4, 4, 8, 8, 16])
    shape = [rng.choice([0, 1, 2, 3]) for _ in range(rng.randrange(4))]
    n_bytes = math.prod(shape) * size * (4 if kind == "U" else 1)
    entries = {
        "descr": f"'{rng.choice('<>|=')}{kind}{size}'",
        "fortran_order": rng.choice(["True", "False"]),
        "shape": f"({''.join(f'{length}, ' for length in shape)})",
    }
    for name in rng.sample(list(odd), rng.choice([0, 0, 1, 2])):
        entries[name] = rng.choice(odd[name])
    text = rng.choice(list(HEADERS.values())) if rng.random() < 0.05 else header(**entries)
    data = npy(text, rng.choice([b"\1\0", b"\2\0"]), rng.randbytes(n_bytes))
    data += bytes(rng.choice([0, 0, 0, 1, 40]))
    damaged = bytearray(data)
    for _ in range(rng.choice([0, 0, 1, 3])):
        place = rng.randrange(len(damaged) or 1)
        how = rng.randrange(4)
        if how == 0:
            damaged[place : place + 1] = bytes([rng.randrange(256)])
        elif how == 1:
            del damaged[place : place + rng.choice([1, 8, 64])]
        elif how == 2:
            damaged[place:place] = damaged[place : place + 30] * rng.choice([1, 200])
        else:
            damaged[place:place] = rng.choice([b"9" * 30, b"(" * 5000, b"-1", b"0x1", b"\\", b"'"])
    return bytes(damaged)
