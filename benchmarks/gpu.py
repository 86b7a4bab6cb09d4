"""What stacking gives on a GPU: the environment, then rounds and questions of more clients.

python -m benchmarks.gpu [--clients 10,50,100] [--models lenet-5,cnn]

Not yet run: there was no GPU where this was written. Without one it says so and ends with 2.
"""

from __future__ import annotations

import platform
import sys

import torch

from benchmarks.stacked import options, table, table_of_questions

MOST_ASKED = 50
"""Clients that are asked about the models of all; pairs grow with the square of their number."""


def main() -> None:
    """Measure and print."""
    parser = options(__doc__)
    parser.set_defaults(models="lenet-5,cnn")
    parser.add_argument("--clients", default="10,50,100", help="numbers of clients, in turn")
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        print("benchmarks.gpu needs a GPU, and torch finds none here", file=sys.stderr)
        sys.exit(2)
    device = torch.cuda.get_device_properties(0)
    print(f"python {platform.python_version()}, torch {torch.__version__}", end=", ")
    print(f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}")
    print(f"{device.name}, {device.total_memory / 2**30:.1f} GiB")
    for clients in map(int, asked.clients.split(",")):
        print(f"\n{clients} clients, {asked.samples} pictures each, batches of 10\n")
        torch.cuda.reset_peak_memory_stats()
        table(
            asked.models.split(","),
            clients=clients,
            samples=asked.samples,
            rounds=asked.rounds,
            device="cuda",
        )
        if clients <= MOST_ASKED:
            print()
            table_of_questions(
                asked.models.split(","),
                clients=clients,
                samples=asked.samples,
                repeats=asked.rounds,
                device="cuda",
            )
        print(f"\npeak {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
