"""What travelled between server and clients, counted where it passes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from learners.task import Message

NUMBER_BYTES = 8
"""What a plain number is taken to weigh."""


@dataclass(frozen=True)
class Traffic:
    """Parameters and bytes that went up to the server and down to clients.

    Parameters are the entries of tensors; plain numbers, text and metrics weigh bytes only.
    """

    up: int = 0
    down: int = 0
    bytes_up: int = 0
    bytes_down: int = 0


class Ledger:
    """Traffic by round and client; round 0 is what happened before the first.

    Parameters
    ----------
    n_rounds, n_clients
        Size of the book.
    """

    def __init__(self, n_rounds: int, n_clients: int) -> None:
        self.counts: NDArray[np.int64] = np.zeros((n_rounds + 1, n_clients, 4), dtype=np.int64)

    def sent_down(self, round: int, client: int, message: Message) -> None:
        """Book a message to a client."""
        self.counts[round, client, 1::2] += _weight(message)

    def sent_up(self, round: int, client: int, reply: Message) -> None:
        """Book a client's reply."""
        self.counts[round, client, 0::2] += _weight(reply)

    def total(self) -> Traffic:
        """Return the traffic of all rounds and clients."""
        return Traffic(*map(int, self.counts.sum(axis=(0, 1))))

    def of_round(self, round: int) -> Traffic:
        """Return the traffic of all clients in a round."""
        return Traffic(*map(int, self.counts[round].sum(axis=0)))

    def of(self, round: int, client: int) -> Traffic:
        """Return the traffic of one client in one round."""
        return Traffic(*map(int, self.counts[round, client]))


def _weight(message: Message) -> tuple[int, int]:
    """Return the number of parameters and of bytes in a message."""
    parameters = n_bytes = 0
    for value in message.values():
        if isinstance(value, Tensor):
            parameters += value.numel()
            n_bytes += value.numel() * value.element_size()
        elif isinstance(value, np.ndarray):
            n_bytes += value.nbytes
        elif isinstance(value, str):
            n_bytes += len(value.encode())
        elif isinstance(value, (list, tuple)):
            n_bytes += NUMBER_BYTES * len(value)
        else:
            n_bytes += NUMBER_BYTES
    return parameters, n_bytes
