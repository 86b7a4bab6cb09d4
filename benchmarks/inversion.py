"""Fig. 11 of the pFedSV paper: recover training pictures from what a client uploads.

A client with one picture takes one step of SGD and uploads through the gate that every upload
passes, without noise and with it (update mode, clip C). The attacker has both models. Then the same
after a real round: ten pictures, several epochs.

    python -P benchmarks/inversion.py --data-dir DIR [--dataset mnist] [--model lenet-dlg]
        [--method dlg|cosine] [--images 10] [--seeds 1] [--noise 1] [--clip 1] [--picture FILE.png]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from torch import Tensor

from learners.algorithm import build_algorithm
from learners.attacks import gradient_from_upload, inferred_label, invert, likeness
from learners.client import Site, answer
from learners.config import RunConfig
from learners.data.clients import ClientData, FederatedData, Split, federated_data
from learners.models import build_model
from learners.parameters import Layout
from learners.privacy import Privacy
from learners.tasks import train
from learners.workspace import Workspace

LR = 0.1


def upload(data: FederatedData, split: Split, model: str, seed: int, privacy, epochs: int):
    """Return the model a client with these pictures receives, and the one it sends."""
    config = RunConfig(clients=1, lr=LR, batch_size=10, local_epochs=epochs, seed=seed)
    module = build_model(model, shape=data.shape, n_classes=data.n_classes, seed=seed)
    client = ClientData(split, split, split, domain="", poisoned=False)
    here = Site(
        config,
        build_algorithm("fedavg", {}),
        Workspace(module, Layout.of(module), torch.device("cpu")),
        FederatedData(data.name, (client,), data.n_classes, data.shape),
        privacy,
    )
    given = answer(here, train, 0, 1, {"model": here.initial}, {})
    assert given.reply is not None
    return here.initial, given.reply["model"]


def attacked(data: FederatedData, received, sent, arguments, seed: int, labels=None) -> Tensor:
    """Return the pictures an attacker finds who has both models."""
    module = build_model(arguments.model, shape=data.shape, n_classes=data.n_classes, seed=seed)
    layout = Layout.of(module)
    gradient = gradient_from_upload(received, sent, LR, layout)
    if labels is None:
        labels = torch.tensor([inferred_label(gradient, layout)])
    return invert(
        module, received, gradient, data.shape, labels,
        method=arguments.method, steps=arguments.steps, seed=seed, bounds=(-1.0, 1.0),
    ).images  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--model", default="lenet-dlg")
    parser.add_argument("--method", default="dlg", choices=["dlg", "cosine"])
    parser.add_argument("--images", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data = federated_data(
        arguments.dataset, clients=1, partition="iid", seed=0, train_size=max(arguments.images, 20),
        data_dir=arguments.data_dir,
    )  # fmt: skip
    pictures = data.clients[0].train
    noisy = Privacy("updates", arguments.noise, arguments.clip, 1e-5)
    rows: list[list[Tensor]] = [[], [], []]
    scores: dict[str, list[tuple[float, float]]] = {"none": [], "noise": []}
    began = time.process_time()
    for seed in range(arguments.seeds):
        for at in range(arguments.images):
            split = Split(pictures.images[at : at + 1], pictures.labels[at : at + 1])
            found = {}
            for name, privacy in (("none", None), ("noise", noisy)):
                models = upload(data, split, arguments.model, seed, privacy, 1)
                found[name] = attacked(data, *models, arguments, seed)[0]
                scores[name].append(likeness(split.images[0], found[name], 2.0))
            print(
                f"seed {seed} image {at}: PSNR {scores['none'][-1][0]:6.2f} dB,"
                f" with noise {scores['noise'][-1][0]:6.2f} dB",
                flush=True,
            )
            if seed == 0:
                for row, image in zip(rows, (split.images[0], *found.values()), strict=True):
                    row.append(image)
    for name, some in scores.items():
        psnr, ssim = torch.tensor(some, dtype=torch.float64).T
        print(
            f"{name:6} PSNR median {psnr.median():.2f} dB, least {psnr.min():.2f}, most"
            f" {psnr.max():.2f}; at least 20 dB: {int((psnr >= 20).sum())} of {len(psnr)}; at most"
            f" 12 dB: {int((psnr <= 12).sum())}; SSIM mean {ssim.mean():.3f}"
        )
    # A real round: ten pictures, five epochs; the attacker is even told the labels.
    split = Split(pictures.images[:10], pictures.labels[:10])
    received, sent = upload(data, split, arguments.model, 0, None, 5)
    found_many = attacked(data, received, sent, arguments, 0, labels=split.labels)
    best = [max(likeness(image, other, 2.0)[0] for other in found_many) for image in split.images]
    print(
        f"after a round of 10 images and 5 epochs: best PSNR per image {max(best):.2f} dB at most"
    )
    print(f"{time.process_time() - began:.0f} CPU s")
    if arguments.picture:
        draw(rows, arguments.picture)


def draw(rows: list[list[Tensor]], path: Path) -> None:
    """Save the picture: originals, recovered, recovered under noise."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.1 * len(rows[0]), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(3, len(rows[0]), squeeze=False)
    for axes_row, row, title in zip(
        grid, rows, ("original", "recovered", "under noise"), strict=True
    ):
        for axes, image in zip(axes_row, row, strict=True):
            pixels = ((image + 1) / 2).clamp(0, 1).permute(1, 2, 0).numpy()
            axes.imshow(pixels.squeeze(), cmap="gray", vmin=0, vmax=1)
            axes.set_xticks([])
            axes.set_yticks([])
        axes_row[0].set_ylabel(title)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
