"""How much memory a stack of clients takes, predicted and measured.

python -m benchmarks.stacked_memory [--models lenet-5,mlp,cnn,cffl-cnn,lenet-dlg] [--mib 200]

Each network is measured in a process of its own: as many clients as are predicted to need `--mib`
train for three steps, and the most memory that the process had above what it had before (the
kernel's VmHWM, so Linux only) is what a stack really takes. A stack of two goes before, so that
what torch loads once does not count, and glibc is told to give memory back at once.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from pathlib import Path

import torch

from learners.client.client import Client, Site
from learners.client.stacked import Stacking, predicted_bytes
from learners.client.training import Fit
from learners.data.contents import ClientData, FederatedData, Split, classes, of_pictures
from learners.models.network import build_model
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace
from learners.settings.config import RunConfig

SHAPES = {"lenet-dlg": (3, 32, 32), "lenet-64": (3, 64, 64)}
"""Pictures of a network; 28×28 for the others."""

_SAMPLES = 30


def fits(model: str, n: int, optimizer: str) -> list[Fit]:
    """Return what n clients with random pictures are asked."""
    from learners.algorithm import build_algorithm

    shape = SHAPES.get(model, (1, 28, 28))

    def some(k: int) -> Split:
        return Split(torch.zeros((k, *shape)), torch.arange(k) % 10)

    nothing = some(0)
    clients = tuple(ClientData(some(_SAMPLES), nothing, nothing) for _ in range(n))
    data = FederatedData("zeros", clients, of_pictures(shape), classes(10))
    config = RunConfig(clients=n, batch_size=10, local_epochs=1, optimizer=optimizer)
    module = build_model(model, shape=shape, n_classes=10, seed=0)
    workspace = Workspace(module, Layout.of(module), torch.device("cpu"))
    site = Site(config, build_algorithm("fedavg", {}), workspace, data)
    return [
        Fit(
            client=client, start=site.initial, data=client.data.train, purpose="train",
            epochs=None, steps=None, lr=0.1, loss=None, objective=None, proximal=0.0,
            anchor=site.initial, only=None, leaves=True,
        )
        for client in (Client(site, i, 1) for i in range(n))
    ]  # fmt: skip


def measured(model: str, optimizer: str, wanted: int) -> tuple[int, int, int]:
    """Return the number of clients, and the bytes predicted and measured; in a fresh process."""
    torch.set_num_threads(1)
    a_client = predicted_bytes(fits(model, 2, optimizer))
    n = max(4, wanted // a_client)
    asked = fits(model, n, optimizer)
    Stacking().train(asked[:2])
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    given = Stacking(most_bytes=1 << 40).train(asked)
    assert all(each is not None for each in given)
    return n, n * a_client, _status("VmHWM") - before


def _status(name: str) -> int:
    """Return a figure of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default="lenet-5,mlp,cnn,cffl-cnn,lenet-dlg")
    parser.add_argument("--optimizers", default="sgd,adam")
    parser.add_argument("--mib", type=int, default=200, help="memory that is aimed at")
    asked = parser.parse_args()
    print("| network | optimiser | clients | predicted MiB | measured MiB | predicted / measured |")
    print("|---|---|---|---|---|---|")
    os.environ |= {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    fresh = multiprocessing.get_context("spawn")
    for model in asked.models.split(","):
        for optimizer in asked.optimizers.split(","):
            with fresh.Pool(1) as pool:
                n, predicted, real = pool.apply(measured, (model, optimizer, asked.mib << 20))
            print(
                f"| {model} | {optimizer} | {n} | {predicted / 2**20:.0f} | {real / 2**20:.0f} |"
                f" {predicted / real:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
