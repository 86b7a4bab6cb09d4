"""What was tried to make a step of LeNet-5 cheaper: CPU time of a step, and what it changes.

python -m benchmarks.lenet_step [--repeats 7] [--only compile]

A step is forward, backward and update on ten pictures of 28×28, in one thread unless it is said.
Every way takes the same 20 batches from the same model; they take turns, and the fastest turn of
each counts, in time of the processor. *Ours* is what `learners.client.training.fit` does.
*Apart*: distance of the trained model from ours over the distance that ours went.
*First*: CPU-seconds until the first epoch was done, where something is compiled before it, by one
process and nothing kept from earlier runs. *Pays after*: rounds of ten clients with 200 pictures
each until that is won back.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch._inductor.config
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional

from learners.client.client import Samples
from learners.data.contents import Split
from learners.models.network import build_model
from learners.rows.parameters import Layout
from learners.rows.workspace import Workspace

BATCH, STEPS, LR, CLIENTS = 10, 20, 0.01, 10
Batches = list[tuple[Tensor, Tensor]]
Epoch = Callable[[], Tensor]
"""Trains from the first model, and returns the row it ends with."""


@dataclass(frozen=True)
class Way:
    """A way to take the steps of an epoch; `share`: for how many clients at once."""

    name: str
    prepare: Callable[[], Epoch]
    share: int = 1
    around: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext


def fresh() -> nn.Module:
    """Return the network with its first weights."""
    return build_model("lenet-5", shape=(1, 28, 28), n_classes=10, seed=0)


def data(client: int = 0, *, channels_last: bool = True) -> Batches:
    """Return the batches of a client, as they are handed out in training."""
    stream = torch.Generator().manual_seed(client)
    split = Split(
        torch.randn((STEPS * BATCH, 1, 28, 28), generator=stream),
        torch.randint(0, 10, (STEPS * BATCH,), generator=stream),
    )
    chunks = Samples(split, torch.device("cpu")).chunks(BATCH)
    return [
        (images if channels_last else images.contiguous(), labels)  # type: ignore[union-attr]
        for images, labels in chunks
    ]


# --- one client, step by step ---------------------------------------------------------------------


def ours(
    make: Callable[[nn.Module], Callable[..., Tensor]] = lambda network: network,
    *,
    channels_last: bool = True,
) -> Epoch:
    """Return our step, through what `make` makes of the network that the workspace has."""
    network = fresh()
    workspace = Workspace(network, Layout.of(network), torch.device("cpu"))
    start, batches = workspace.saved(), data(channels_last=channels_last)
    call = make(network)

    def epoch() -> Tensor:
        workspace.load(start)
        for images, labels in batches:
            workspace.descend(functional.cross_entropy(call(images), labels), LR)
        return workspace.saved()

    return epoch


def usual() -> Epoch:
    """Return a plain loop with a module and `torch.optim`."""
    network, first = fresh(), fresh()
    layout, batches = Layout.of(network), data(channels_last=False)

    def epoch() -> Tensor:
        network.load_state_dict(first.state_dict())
        optimizer = torch.optim.SGD(network.parameters(), lr=LR)
        for images, labels in batches:
            optimizer.zero_grad()
            functional.cross_entropy(network(images), labels).backward()
            optimizer.step()
        return layout.pack(network)

    return epoch


def fused() -> Epoch:
    """Return the same with torch's fused update, and gradients that stay where they are."""
    network, first = fresh(), fresh()
    layout, batches = Layout.of(network), data()

    def epoch() -> Tensor:
        network.load_state_dict(first.state_dict())
        optimizer = torch.optim.SGD(network.parameters(), lr=LR, fused=True)
        for images, labels in batches:
            optimizer.zero_grad(set_to_none=False)
            functional.cross_entropy(network(images), labels).backward()
            optimizer.step()
        return layout.pack(network)

    return epoch


class Patches(nn.Module):
    """The same network with convolutions as matrix products of patches."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores."""
        first, second = (part for part in self.network.modules() if isinstance(part, nn.Conv2d))
        seen = functional.pad(images, (2, 2, 2, 2))
        for layer in (first, second):
            n, channels, height, width = seen.shape
            high, wide = height - 4, width - 4
            at = seen.stride()
            patches = seen.as_strided(
                (channels, 5, 5, n, high, wide), (at[1], at[2], at[3], at[0], at[2], at[3])
            ).reshape(channels * 25, -1)
            made = torch.addmm(layer.bias[:, None], layer.weight.flatten(1), patches)
            pooled = functional.max_pool2d(made.view(-1, n, high, wide), 2).relu()
            seen = pooled.transpose(0, 1).contiguous()
        return self.network.head(self.network.hidden(seen.flatten(1)))  # type: ignore[operator]


# --- compiled -------------------------------------------------------------------------------------


def loss_of(network: nn.Module) -> Callable[..., Tensor]:
    """Return the loss as a function of the weights."""

    def loss(weights: dict[str, Tensor], images: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(functional_call(network, weights, (images,)), labels)

    return loss


def compiled_steps(steps: int, mode: str | None = None) -> Epoch:
    """Forward, backward and update of some steps as one compiled function."""
    network = fresh()
    names = [name for name, _ in network.named_parameters()]
    first = [each.detach().clone() for each in network.parameters()]
    differentiate = grad_and_value(loss_of(network))
    batches = data()

    def some(weights: list[Tensor], images: list[Tensor], labels: list[Tensor]) -> list[Tensor]:
        for one, wanted in zip(images, labels, strict=True):
            slopes, _ = differentiate(dict(zip(names, weights, strict=True)), one, wanted)
            weights = [w - LR * slopes[name] for name, w in zip(names, weights, strict=True)]
        return weights

    run = torch.compile(some, mode=mode, fullgraph=True)

    def epoch() -> Tensor:
        weights = first
        with torch.no_grad():
            for begin in range(0, STEPS, steps):
                images, labels = zip(*batches[begin : begin + steps], strict=True)
                weights = run(weights, list(images), list(labels))
        return torch.cat([each.flatten() for each in weights])

    return epoch


# --- ten clients at once --------------------------------------------------------------------------


def at_once(compiled: bool) -> Epoch:
    """Return a stacked step of ten clients; the first client's model is compared."""
    network = fresh()
    names = [name for name, _ in network.named_parameters()]
    first = [each.detach().expand(CLIENTS, *each.shape).clone() for each in network.parameters()]
    differentiate = vmap(grad_and_value(loss_of(network)))
    of_clients = [data(client) for client in range(CLIENTS)]
    batches = [
        (torch.stack([images for images, _ in some]), torch.stack([labels for _, labels in some]))
        for some in zip(*of_clients, strict=True)
    ]

    def step(weights: list[Tensor], images: Tensor, labels: Tensor) -> list[Tensor]:
        slopes, _ = differentiate(dict(zip(names, weights, strict=True)), images, labels)
        return [w - LR * slopes[name] for name, w in zip(names, weights, strict=True)]

    run = torch.compile(step, fullgraph=True) if compiled else step

    def epoch() -> Tensor:
        weights = first
        with torch.no_grad():
            for images, labels in batches:
                weights = run(weights, images, labels)
        return torch.cat([each[0].flatten() for each in weights])

    return epoch


# --- settings -------------------------------------------------------------------------------------


@contextlib.contextmanager
def threads(n: int) -> Iterator[None]:
    """Compute with n threads."""
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(1)


def without_onednn() -> contextlib.AbstractContextManager[Any]:
    """Compute without oneDNN."""
    return torch.backends.mkldnn.flags(enabled=False)


def scripted(network: nn.Module) -> Callable[..., Tensor]:
    """Return the network traced by torch.jit; frozen, it could not be trained."""
    return torch.jit.trace(network, data()[0][0])  # type: ignore[no-any-return, no-untyped-call]


WAYS = [
    Way("ours", ours),
    Way("torch.optim, channels first", usual),
    Way("torch.optim, fused, gradients kept", fused),
    Way("ours, two threads", ours, around=lambda: threads(2)),
    Way("ours, channels first", lambda: ours(channels_last=False)),
    Way("ours, without oneDNN", ours, around=without_onednn),
    Way(
        "ours, channels first, without oneDNN",
        lambda: ours(channels_last=False),
        around=without_onednn,
    ),
    Way("torch.jit.trace", lambda: ours(scripted)),
    Way("patches and matrix products", lambda: ours(Patches)),
    Way("compile: the network", lambda: ours(torch.compile)),
    Way("compile: a step", lambda: compiled_steps(1)),
    Way("compile: a step, reduce-overhead", lambda: compiled_steps(1, "reduce-overhead")),
    Way("compile: an epoch of 20 steps", lambda: compiled_steps(STEPS)),
    Way("ten clients at once", lambda: at_once(False), share=CLIENTS),
    Way("ten clients at once, compiled", lambda: at_once(True), share=CLIENTS),
]


def processor_time() -> float:
    """Return the CPU-seconds of this process and of the compilers it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def measured(ways: list[Way], repeats: int) -> None:
    """Print the table."""
    start = Layout.of(fresh()).pack(fresh())
    epochs: dict[str, Epoch] = {}
    first: dict[str, float] = {}
    ends: dict[str, Tensor] = {}
    for way in ways:
        began = processor_time()
        try:
            with way.around():
                epochs[way.name] = way.prepare()
                ends[way.name] = epochs[way.name]()
        except Exception as error:  # a way that does not exist here is a row, too
            print(f"{way.name}: {type(error).__name__}: {str(error).strip()[:300]}", flush=True)
            continue
        first[way.name] = processor_time() - began
    best = dict.fromkeys(epochs, float("inf"))
    for _ in range(repeats):
        for way in ways:
            if way.name not in epochs:
                continue
            with way.around():
                epochs[way.name]()
                began = time.process_time()
                epochs[way.name]()
                best[way.name] = min(best[way.name], time.process_time() - began)
    print("| step | ms | ours / this | apart | first, s | pays after, rounds |")
    print("|---|---|---|---|---|---|")
    moved = (ends["ours"] - start).norm()
    for way in ways:
        if way.name not in epochs:
            continue
        step = best[way.name] / STEPS / way.share
        ratio = best["ours"] / STEPS / step
        apart = float((ends[way.name] - ends["ours"]).norm() / moved)
        won = (best["ours"] / STEPS - step) * STEPS * CLIENTS  # seconds in a round
        wait = first[way.name]
        waits = "compile" in way.name
        pays = f"{wait / won:.0f}" if waits and won > 0 else ("never" if waits else "–")
        print(
            f"| {way.name} | {1000 * step:.3f} | {ratio:.2f} | {apart:.0e} |"
            f" {f'{wait:.0f}' if waits else '–'} | {pays} |",
            flush=True,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="ways whose name contains this, beside ours")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch._inductor.config.compile_threads = 1  # type: ignore[attr-defined]
    torch._inductor.config.force_disable_caches = True  # type: ignore[attr-defined]
    warnings.filterwarnings("ignore", message="TF32 acceleration")
    print(f"torch {torch.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    measured([way for way in WAYS if way.name == "ours" or asked.only in way.name], asked.repeats)


if __name__ == "__main__":
    main()
