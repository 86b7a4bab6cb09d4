"""stored(game, folder): values that are on disk as soon as they are known.

A folder belongs to one game. A fingerprint of everything the game is made of tells it from others.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import struct
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coalitions.checks import GameLike, as_game, whole_number
from coalitions.errors import (
    DamagedFileError,
    DamagedFileWarning,
    InvalidInputError,
    shown,
    warn_caller,
    with_keywords,
)
from coalitions.execution.workers import ParallelGame
from coalitions.files.opening import load_json, opened
from coalitions.files.writing import disk_trouble_named, storage_error, write_json
from coalitions.game import FloatVector, Game, as_coalitions, evaluate, labels_of, players_of

if sys.platform != "win32":
    import fcntl

_FORMAT = "coalition-kit values"


@with_keywords()
def stored(
    game: GameLike, folder: str | Path, *, name: str | None = None, batch_size: int = 1
) -> StoredGame:
    """Return the game with a memory on disk: no coalition is evaluated twice, in any run.

    Each value is written as soon as the game has returned it. A run that was killed goes on where
    it was, if it is started again with the same folder. Several processes may share a folder.

    Parameters
    ----------
    game
        Any game whose value of a coalition depends on that coalition alone.
    folder
        Where the values are kept; it is made if it is not there.
    name
        What tells this game from others. By default a digest of its data and code. Give a name if
        the game holds what cannot be digested, or if its code may change while its values do not.
    batch_size
        How many coalitions the game is asked for at once. What is asked for and not yet answered
        is lost with a kill, so 1 is right if a coalition takes long.

    Raises
    ------
    InvalidInputError
        The folder holds the values of another game, or is no path.

    Examples
    --------
    >>> import tempfile
    >>> from coalitions import AirportGame
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = stored(AirportGame([8, 11, 13]), folder)([[1, 1, 0], [0, 1, 1]])
    ...     again = stored(AirportGame([8, 11, 13]), folder)  # in another run
    ...     again([[1, 1, 0], [1, 0, 0]]), again.evaluations, len(again)
    (array([11.,  8.]), 1, 3)
    """
    if not isinstance(folder, str | os.PathLike):
        raise InvalidInputError(
            f"the folder for values is {shown(folder)}; it must be a path, such as 'values'"
        )
    return StoredGame(as_game(game), Path(folder), name, batch_size)


class StoredGame:
    """A game that keeps its values in a folder; see `stored`.

    Attributes
    ----------
    evaluations
        How many coalitions the game inside was asked for by this object.
    """

    def __init__(self, game: Game, folder: Path, name: str | None, batch_size: int) -> None:
        if isinstance(game, ParallelGame):
            raise InvalidInputError(
                "store first, then share the work: parallel(stored(game, folder), workers=…)"
            )
        self.game = game
        self.folder = folder
        self.batch_size = whole_number(batch_size, "the batch size", 1)
        self.evaluations = 0
        self._key_bytes = (players_of(game) + 7) // 8
        self._record = struct.Struct(f"<{self._key_bytes}sdI")
        self._known: dict[bytes, float] = {}
        self._read_to = 0
        self._claim(name)
        self._refresh()

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.game.n_players)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the players: the game's own, or numbers."""
        return labels_of(self.game)

    def __len__(self) -> int:
        """Return how many coalitions are known."""
        return len(self._known)

    def __call__(self, coalitions: ArrayLike) -> FloatVector:
        """Return the values of the coalitions; only those that are not on disk are evaluated."""
        rows = as_coalitions(coalitions, self.n_players)
        keys = [key.tobytes() for key in np.packbits(rows, axis=1)]
        if any(key not in self._known for key in keys):
            self._refresh()  # another process may have been here
        fresh = {key: place for place, key in reversed(list(enumerate(keys)))}
        unseen = sorted(place for key, place in fresh.items() if key not in self._known)
        for start in range(0, len(unseen), self.batch_size):
            places = unseen[start : start + self.batch_size]
            values = evaluate(self.game, rows[places]).tolist()
            self.evaluations += len(places)
            found = {keys[place]: value for place, value in zip(places, values, strict=True)}
            self._append(found)
            self._known.update(found)
        return np.fromiter((self._known[key] for key in keys), np.float64, len(keys))

    def _claim(self, name: str | None) -> None:
        """Write down whose values these are, or compare with what is written."""
        identity = f"named {name}" if name is not None else fingerprint(self.game)
        if identity is None:
            raise InvalidInputError(
                "this game cannot be told from others by what it is made of; give it a name:"
                " stored(game, folder, name=…)"
            )
        document = {"format": _FORMAT, "version": 1, "players": self.n_players, "game": identity}
        card = self.folder / "game.json"
        if not card.exists():
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                refusal = InvalidInputError(f"{self.folder}: cannot be made ({error.strerror})")
                raise storage_error(error, self.folder) or refusal from None
            if self._path.exists():
                raise DamagedFileError(
                    f"{card} is gone, so the game of the values in {self._path.name} is unknown;"
                    " take another folder"
                )
            write_json(card, document)
        with opened(card) as (where, file):
            found = load_json(file.read(), where)
        if found != document:
            kept = found.get("game") if isinstance(found, dict) else found
            raise InvalidInputError(
                f"{self.folder} holds the values of another game ({shown(kept)}, not"
                f" {shown(identity)}); take another folder, or give both the same name if you know"
                " that their values are the same"
            )

    @property
    def _path(self) -> Path:
        return self.folder / "values.bin"

    def _refresh(self) -> None:
        """Read the records that were added since the last look; a torn one at the end waits."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read_to)
            data = file.read()
        size = self._record.size
        whole = len(data) // size * size
        damaged = 0
        for key, value, check in self._record.iter_unpack(data[:whole]):
            if check == _check(key, value):
                self._known[key] = value
            else:
                damaged += 1
        self._read_to += whole
        if damaged:
            warn_caller(
                f"{self._path}: {damaged} values are damaged and will be evaluated again",
                DamagedFileWarning,
            )

    def _append(self, values: dict[bytes, float]) -> None:
        records = b"".join(
            self._record.pack(key, value, _check(key, value)) for key, value in values.items()
        )
        try:
            with (
                disk_trouble_named(self._path),
                self._path.open("ab", buffering=0) as file,
                _locked(file.fileno()),
            ):
                end = os.fstat(file.fileno()).st_size
                torn = end % self._record.size  # somebody was killed in the middle of a record
                if torn:
                    os.ftruncate(file.fileno(), end - torn)
                left = memoryview(records)
                while left:
                    left = left[file.write(left) :]
        except OSError as error:
            raise InvalidInputError(f"{self._path}: cannot be written ({error.strerror})") from None

    def __repr__(self) -> str:
        return f"stored({self.game!r}, {str(self.folder)!r}, {len(self)} values)"


def _check(key: bytes, value: float) -> int:
    return zlib.crc32(struct.pack("<d", value), zlib.crc32(key))


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Let one process at a time add to the file. The system lets go when the process ends."""
    if sys.platform == "win32":  # nothing is locked there
        yield
        return
    with suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield  # closing the file lets go


# ----------------------------------------------------------------------------------------
# The fingerprint: a digest of everything a game is made of


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
