"""Shared fixtures: seeded randomness, and no way out of the machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings

# Real data and benchmark instances, which are not in the repository.
SHARED = Path(os.environ.get("COALITIONS_SHARED") or Path(__file__).resolve().parents[2] / "shared")

# Kernels compile on their first call, so a single example may be slow without being wrong.
# Half of the usual hundred examples, since it runs often; `--hypothesis-profile=long` has more.
settings.register_profile("default", deadline=None, print_blob=True, max_examples=50)
settings.register_profile("long", deadline=None, print_blob=True, max_examples=500)
settings.load_profile("default")


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk() -> Iterator[None]:
    """Leave what tests write to the system: it need not survive a power cut.

    A run syncs about thirteen files, of 8 ms each. Who is killed is a process of its own, which
    syncs as always.
    """

    def leave(descriptor: object) -> None:
        """Do nothing."""

    with mock.patch.object(os, "fsync", leave):
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)


@pytest.fixture
def shared_data() -> Path:
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"real data is not here: {folder}")
    return folder


@pytest.fixture
def shared_instances() -> Path:
    folder = SHARED / "instances"
    if not folder.is_dir():
        pytest.skip(f"benchmark instances are not here: {folder}")
    return folder


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            raise OSError(f"tests do not use the network, but something connects to {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
