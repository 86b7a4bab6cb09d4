"""What tells one game from another: a digest of everything it is made of."""

from __future__ import annotations

import hashlib
import pickle
from types import CodeType, FunctionType
from typing import Any

from coalitions.game import Game


def fingerprint(game: Game) -> str | None:
    """Return a digest of the game's data and code; None if it holds what cannot be written down.

    The same game has the same digest in another process. Of a function that the game holds the
    compiled code counts, its defaults and what it closes over; not the global names it uses, and
    not the code of classes.

    Examples
    --------
    >>> from coalitions import AirportGame
    >>> fingerprint(AirportGame([1, 2])) == fingerprint(AirportGame([1, 2]))
    True
    >>> fingerprint(AirportGame([1, 2])) == fingerprint(AirportGame([1, 3]))
    False
    """
    digest = _Digest()
    pickler = _Pickler(digest, protocol=5)
    # No memory of objects already seen: it would tell equal games apart by which of their parts
    # happen to be one object.
    pickler.fast = True
    try:
        pickler.dump(game)
    except (pickle.PicklingError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    return digest.sha.hexdigest()


class _Digest:
    """A file that only remembers the digest of what is written to it."""

    def __init__(self) -> None:
        self.sha = hashlib.sha256()

    def write(self, data: bytes | memoryview) -> int:
        self.sha.update(data)
        return memoryview(data).nbytes


class _Pickler(pickle.Pickler):
    """Writes functions down by what they do, where pickle would write their names."""

    def reducer_override(self, obj: Any) -> Any:  # noqa: ANN401 (pickle's protocol)
        if not isinstance(obj, FunctionType):
            return NotImplemented
        cells = [cell.cell_contents for cell in obj.__closure__ or ()]
        parts = (obj.__qualname__, _code(obj.__code__), obj.__defaults__, obj.__kwdefaults__, cells)
        return tuple, (parts,)


def _code(code: CodeType) -> tuple[object, ...]:
    """Return what the code does, without where it stands."""
    constants = tuple(
        _code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts
    )
    return code.co_code, code.co_names, code.co_varnames, constants
