"""CPU seconds to load and deal out each data set: python benchmarks/data.py FOLDER."""

import sys
import time
from pathlib import Path

from learners.data.clients import federated_data

JOBS = [
    ("digits", 10, "pathological:2", None),
    ("mnist", 10, "pathological:2", None),
    ("mnist", 100, "pathological:2", None),
    ("mnist", 100, "dirichlet:0.1", None),
    ("fashion-mnist", 100, "dirichlet:0.5", 50),
    ("cifar10", 100, "dirichlet:0.1", None),
    ("synth-digits", 10, "iid", None),
    ("mt-sv-mm", 15, "domains", 200),
    ("digit-5", 5, "domains", 1000),
    ("office-10", 4, "domains", None),
]


def main(folder: Path) -> None:
    print("| data set | clients | partition | train size | CPU seconds |\n|---|---|---|---|---|")
    for name, clients, partition, train_size in JOBS:
        start = time.process_time()
        federated_data(
            name,
            clients=clients,
            partition=partition,
            seed=0,
            train_size=train_size,
            data_dir=folder,
        )
        seconds = time.process_time() - start
        print(f"| {name} | {clients} | {partition} | {train_size or 'all'} | {seconds:.2f} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
