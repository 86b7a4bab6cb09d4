"""Fig. 11 of the pFedSV paper: recover training pictures from what a client uploads.

A client with one picture takes one step of SGD and uploads, without noise and with it; then the
same after a real round. See `learners.attacks.inversion`, which `coalitions attack` uses, too.

    python -P benchmarks/inversion.py --data-dir DIR [--dataset mnist] [--model lenet-5]
        [--method auto|features|dlg|cosine] [--images 10] [--seeds 1] [--steps N] [--noise 1]
        [--clip 1] [--picture FILE.png]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from cli.report.data_pictures import draw_inversion
from learners.attacks.inversion import Attacked, inversion_of
from learners.privacy.mechanism import Privacy
from learners.settings.config import RunConfig


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--model", default="lenet-5")
    parser.add_argument("--method", default="auto", choices=["auto", "features", "dlg", "cosine"])
    parser.add_argument("--images", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--picture", type=Path, help="of the first seed")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    plain: list[float] = []
    noised: list[float] = []
    began = time.process_time()

    def tell(number: int, found: Attacked) -> None:
        plain.append(found.likeness[0])
        noised.append(found.noised_likeness[0])
        print(
            f"image {number}: PSNR {plain[-1]:6.2f} dB, SSIM {found.likeness[1]:.3f}; with noise"
            f" {noised[-1]:6.2f} dB ({time.process_time() - began:.0f} CPU s so far)",
            flush=True,
        )

    for seed in range(arguments.seeds):
        config = RunConfig(
            dataset=arguments.dataset, data_dir=str(arguments.data_dir), model=arguments.model,
            clients=1, partition="iid", train_size=max(arguments.images, 20), lr=0.1,
            local_epochs=5, seed=seed,
        )  # fmt: skip
        found = inversion_of(
            config, pictures=arguments.images, method=arguments.method, steps=arguments.steps,
            privacy=Privacy("updates", arguments.noise, arguments.clip, 1e-5), on_picture=tell,
        )  # fmt: skip
        least, most = min(found.round_psnr), max(found.round_psnr)
        print(
            f"seed {seed}, {found.method}; after a round of {len(found.round_psnr)} images and 5"
            f" epochs: best PSNR per image {least:.2f} … {most:.2f} dB"
        )
        if seed == 0 and arguments.picture:
            draw_inversion(found, arguments.picture)
    for name, some in (("without noise", plain), ("with noise", noised)):
        psnr = torch.tensor(some, dtype=torch.float64)
        print(
            f"{name}: PSNR median {psnr.median():.2f} dB, least {psnr.min():.2f}, most"
            f" {psnr.max():.2f}; at least 20 dB: {int((psnr >= 20).sum())} of {len(psnr)}; at most"
            f" 12 dB: {int((psnr <= 12).sum())}"
        )


if __name__ == "__main__":
    main()
