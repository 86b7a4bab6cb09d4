"""Memory that two processes share, to pass tensors without copying them through a pipe."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

_ALIGNMENT = 64
"""Bytes: a cache line, and what torch aligns its own tensors to."""


@dataclass(frozen=True)
class _Slot:
    """Where a tensor lies in the mailbox."""

    offset: int
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class _Inline:
    """A tensor the mailbox had no room for; it goes through the pipe."""

    array: np.ndarray[Any, Any]


class Mailbox:
    """One direction between two processes; it holds one parcel at a time.

    Made before the fork, as anonymous shared memory: it needs no file, /dev/shm's limit does not
    apply, pages cost nothing until they are used, and the system takes them back however the
    processes end.

    Parameters
    ----------
    capacity
        Bytes; what does not fit goes through the pipe, slower but the same.
    """

    def __init__(self, capacity: int) -> None:
        self._bytes = torch.frombuffer(mmap.mmap(-1, capacity), dtype=torch.uint8)

    def put(self, *parcels: Mapping[str, Any] | None) -> tuple[dict[str, Any] | None, ...]:
        """Copy the parcels' tensors in; return what must go through the pipe instead."""
        free = 0
        packed: list[dict[str, Any] | None] = []
        for parcel in parcels:
            if parcel is None:
                packed.append(None)
                continue
            entries: dict[str, Any] = {}
            for name, value in parcel.items():
                if isinstance(value, Tensor):
                    slot = _Slot(free, tuple(value.shape), value.dtype)
                    if free + value.nbytes <= len(self._bytes):
                        self._view(slot).copy_(value.detach())
                        free += -(-value.nbytes // _ALIGNMENT) * _ALIGNMENT
                        value = slot
                    else:
                        value = _Inline(value.detach().numpy())
                entries[name] = value
            packed.append(entries)
        return tuple(packed)

    def take(self, packed: Mapping[str, Any] | None, *, copy: bool) -> dict[str, Any] | None:
        """Return a parcel; without `copy`, its tensors are good until the next `put`."""
        if packed is None:
            return None
        parcel = {}
        for name, value in packed.items():
            if isinstance(value, _Slot):
                view = self._view(value)
                parcel[name] = view.clone() if copy else view
            elif isinstance(value, _Inline):
                parcel[name] = torch.from_numpy(value.array)
            else:
                parcel[name] = value
        return parcel

    def _view(self, slot: _Slot) -> Tensor:
        n_bytes = slot.dtype.itemsize
        for length in slot.shape:
            n_bytes *= length
        return self._bytes[slot.offset : slot.offset + n_bytes].view(slot.dtype).view(slot.shape)
