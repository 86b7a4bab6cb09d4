"""Time of federated rounds: ours, a plain DataLoader loop, and Flower's simulation, same work.

    python benchmarks/federation.py                     # all tables
    python benchmarks/federation.py rounds utility      # some of them

`rounds`   10 clients × 200 images of 28×28, batch 10, 1 epoch, tests of 50 images each round.
`start`    from typing the command to the end of the first round.
`utility`  63 coalitions of six LeNet-5 models on 1000 images.
`scaling`  10 against 100 clients: time per round and memory.
`methods`  seconds per round of every algorithm, relative to fedavg.

Every contender runs in a process of its own, contenders take turns, and the fastest round of
each counts: what else runs on the machine can only add time. Load is printed beside it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

# This folder has a solvers.py of its own, which must not be taken for the package.
sys.path = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).parent]

CLIENTS, TRAIN, TEST, BATCH, LR = 10, 200, 50, 10, 0.01
SHAPE, CLASSES = (1, 28, 28), 10
REPEATS, ROUNDS = 3, 4
TARGETS = {"lenet-5": 1.8, "cnn": 1.4}
MODELS = list(TARGETS)


def main() -> None:
    if sys.argv[1:2] == ["--contender"]:
        print(json.dumps(CONTENDERS[sys.argv[2]](*sys.argv[3:])))
        return
    global REPEATS, MODELS
    parser = argparse.ArgumentParser(description="Time of federated rounds against peers.")
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="which; all if none")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="processes per contender")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, help="of `rounds`")
    arguments = parser.parse_args()
    REPEATS, MODELS = arguments.repeats, arguments.models
    wanted = arguments.tables or list(TABLES)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start\n")
    for name in wanted:
        TABLES[name]()
        print(f"  (load {os.getloadavg()[0]:.1f})\n")


def measured(*arguments: object) -> dict[str, float]:
    """Run a contender in a fresh process."""
    command = [sys.executable, __file__, "--contender", *map(str, arguments)]
    # One thread per process for everyone: it is the fastest arrangement for each of them.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "RAY_DEDUP_LOGS": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{arguments}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


# --- the same work for everyone -------------------------------------------------------------


def client_data(n_clients: int = CLIENTS):
    import torch

    stream = torch.Generator().manual_seed(0)

    def split(n: int):
        return (
            torch.randn((n, *SHAPE), generator=stream),
            torch.randint(0, CLASSES, (n,), generator=stream),
        )

    return [(split(TRAIN), split(TEST)) for _ in range(n_clients)]


def network(model: str):
    from learners.models import build_model

    return build_model(model, shape=SHAPE, n_classes=CLASSES, seed=0)


def usual_network(model: str):
    """Return the same network as one usually writes it: convolution, ReLU, pool; same weights."""
    import torch
    from torch import nn

    first, second, padding, *dense = {
        "lenet-5": (6, 16, 0, 400, 120, 84),
        "cnn": (32, 64, 2, 3136, 512),
    }[model]
    layers = [
        nn.Conv2d(1, first, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(first, second, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    ]  # fmt: skip
    for width, following in itertools.pairwise(dense):
        layers += [nn.Linear(width, following), nn.ReLU()]
    usual = nn.Sequential(*layers, nn.Linear(dense[-1], CLASSES))
    ours = network(model)
    usual.load_state_dict(
        dict(zip(usual.state_dict(), ours.state_dict().values(), strict=True)), strict=True
    )
    images = torch.zeros(2, *SHAPE).uniform_(-1, 1)
    assert torch.allclose(usual(images), ours(images), atol=1e-6)
    return usual


# --- contenders -----------------------------------------------------------------------------


def federation(model: str, workers: int, n_clients: int = CLIENTS, algorithm: str = "fedavg"):
    import torch

    from learners.algorithm import build_algorithm
    from learners.client.client import Site
    from learners.data.client_data import ClientData, FederatedData, Split, classes, of_pictures
    from learners.rows.parameters import Layout
    from learners.rows.workspace import Workspace
    from learners.server.federation import Federation
    from learners.server.local_engine import local_engine
    from learners.settings.config import RunConfig

    config = RunConfig(
        algorithm=algorithm,
        clients=n_clients,
        rounds=ROUNDS,
        local_epochs=1,
        batch_size=BATCH,
        lr=LR,
        workers=workers,
        model=model,
    )
    clients = tuple(
        ClientData(Split(*train), Split(*(each[:40] for each in test)), Split(*test), "", False)
        for train, test in client_data(n_clients)
    )
    module = network(model)
    workspace = Workspace(module, Layout.of(module), torch.device("cpu"))
    data = FederatedData("benchmark", clients, of_pictures(SHAPE), classes(CLASSES))
    method = build_algorithm(algorithm, {})
    site = Site(config, method, workspace, data)
    engine = local_engine(site, workers)
    return Federation(config, method, engine, workspace.layout, site.initial), engine


def ours(model: str, workers: str, n_clients: str = str(CLIENTS), algorithm: str = "fedavg"):
    import torch

    torch.set_num_threads(1)
    before = memory()
    server, engine = federation(model, int(workers), int(n_clients), algorithm)
    clock = Clock()
    for _ in server.rounds():
        clock.round()
    engine.close()
    return clock.figures() | {"memory": memory() - before}


class Clock:
    """Wall time of the fastest round, and processor time per round of all processes involved.

    The first round warms up and is left out of both.
    """

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.moments: list[float] = []
        self.used: list[float] = []

    def round(self) -> None:
        """Note that a round is over."""
        self.moments.append(time.perf_counter())
        self.used.append(processor_time())

    def figures(self) -> dict[str, float]:
        """Return the seconds of a round, and of the first one from the start."""
        rounds = [after - before for before, after in itertools.pairwise(self.moments)]
        used = (self.used[-1] - self.used[0]) / len(rounds)
        return {"round": min(rounds), "cpu": used, "first": self.moments[0] - self.began}


def processor_time() -> float:
    """Return the seconds of processor time of this process and all that descend from it."""
    parents, seconds = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(") ")[2].split()
            except OSError:  # it ended meanwhile
                continue
            parents[int(folder.name)] = int(fields[1])
            ticks = int(fields[11]) + int(fields[12])
            seconds[int(folder.name)] = ticks / os.sysconf("SC_CLK_TCK")

    def ours(process: int) -> bool:
        while process in parents and process != os.getpid():
            process = parents[process]
        return process == os.getpid()

    return sum(used for process, used in seconds.items() if ours(process))


def memory() -> float:
    """Return the peak memory of this process and of all its children, in MiB."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return max(own, children) / 1024


def plain_loop(model: str, whose: str = "usual"):
    """One process, one thread, DataLoaders, state dicts: what one would write first."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    clients = [
        (
            DataLoader(TensorDataset(*train), batch_size=BATCH, shuffle=True),
            DataLoader(TensorDataset(*test), batch_size=TEST),
        )
        for train, test in client_data()
    ]
    module = network(model) if whose == "ours" else usual_network(model)
    server = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    clock = Clock()
    for _ in range(ROUNDS):
        trained = []
        for loader, _ in clients:
            module.load_state_dict(server)
            module.train()
            optimizer = torch.optim.SGD(module.parameters(), lr=LR)
            for images, labels in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(module(images), labels).backward()
                optimizer.step()
            trained.append({name: t.clone() for name, t in module.state_dict().items()})
        server = {name: sum(each[name] for each in trained) / len(trained) for name in server}
        module.load_state_dict(server)
        module.eval()
        with torch.no_grad():
            for _, loader in clients:
                for images, labels in loader:
                    scores = module(images)
                    nn.functional.cross_entropy(scores, labels).item()
                    (scores.argmax(1) == labels).sum().item()
        clock.round()
    return clock.figures()


def flower(model: str):
    """Flower's simulation with two actors of one core each."""
    import logging

    import torch
    from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    logging.getLogger("flwr").setLevel(logging.ERROR)
    clock = Clock()
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        module, (data, _) = at_client(model, context.node_config["partition-id"], message)
        optimizer = torch.optim.SGD(module.parameters(), lr=LR)
        module.train()
        for images, labels in data:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(images), labels).backward()
            optimizer.step()
        content = {
            "arrays": ArrayRecord(module.state_dict()),
            "metrics": MetricRecord({"num-examples": TRAIN}),
        }
        return Message(content=RecordDict(content), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        module, (_, data) = at_client(model, context.node_config["partition-id"], message)
        module.eval()
        correct, loss = 0, 0.0
        with torch.no_grad():
            for images, labels in data:
                scores = module(images)
                loss += torch.nn.functional.cross_entropy(scores, labels).item()
                correct += (scores.argmax(1) == labels).sum().item()
        metrics = {"accuracy": correct / TEST, "loss": loss, "num-examples": TEST}
        content = RecordDict({"metrics": MetricRecord(metrics)})
        return Message(content=content, reply_to=message)

    server = ServerApp()

    @server.main()
    def serve(grid: Grid, context: Context) -> None:
        def after_round(number: int, arrays: ArrayRecord) -> None:
            if number:  # 0 is before the first round
                clock.round()

        strategy = FedAvg(min_train_nodes=CLIENTS, min_evaluate_nodes=CLIENTS,
                          min_available_nodes=CLIENTS)  # fmt: skip
        strategy.start(
            grid=grid,
            initial_arrays=ArrayRecord(usual_network(model).state_dict()),
            num_rounds=ROUNDS,
            evaluate_fn=after_round,
        )

    run_simulation(
        server_app=server,
        client_app=app,
        num_supernodes=CLIENTS,
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {"num_cpus": 2, "log_to_driver": False, "include_dashboard": False},
        },
    )
    return clock.figures()


KEPT: dict[str, object] = {}
"""What an actor keeps between messages, so that only messages cost Flower time."""


def at_client(model: str, partition: int, message):
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    if "data" not in KEPT:
        KEPT["data"] = [
            (
                DataLoader(TensorDataset(*train), batch_size=BATCH, shuffle=True),
                DataLoader(TensorDataset(*test), batch_size=TEST),
            )
            for train, test in client_data()
        ]
        KEPT["network"] = usual_network(model)
    KEPT["network"].load_state_dict(message.content["arrays"].to_torch_state_dict())
    return KEPT["network"], KEPT["data"][partition]


def coalitions_plain() -> dict[str, float]:
    """Average, load_state_dict and forward in a loop, with one thread."""
    import numpy as np
    import torch

    torch.set_num_threads(1)
    states, images, labels, rows = six_models()
    module = network("lenet-5").eval()
    began = time.perf_counter()
    correct = []
    with torch.no_grad():
        for members in rows:
            some = np.flatnonzero(members)
            mean = {name: sum(states[i][name] for i in some) / len(some) for name in states[0]}
            module.load_state_dict(mean)
            correct.append(int((module(images).argmax(1) == labels).sum()))
    return {"seconds": time.perf_counter() - began, "correct": correct}


def coalitions_ours() -> dict[str, float]:
    """Our game: all coalitions in one call."""
    import torch

    from learners.client.client import Samples
    from learners.client.model_games import ModelGame
    from learners.data.client_data import Split
    from learners.rows.parameters import Layout
    from learners.rows.workspace import Workspace

    torch.set_num_threads(1)
    states, images, labels, rows = six_models()
    module = network("lenet-5")
    layout = Layout.of(module)
    models = torch.stack([layout.pack(with_state(state)) for state in states])
    workspace = Workspace(module, layout, torch.device("cpu"))
    data = Samples(Split(images, labels), torch.device("cpu"))
    game = ModelGame(workspace, models, data, n_classes=CLASSES)
    began = time.perf_counter()
    values = game(rows)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "correct": [round(value * 1000) for value in values]}


def coalitions_two(workers: str) -> dict[str, float]:
    """Two clients, each with the exact Shapley values of six models."""
    import torch

    from learners.algorithm import build_algorithm
    from learners.client.client import Site
    from learners.client.tasks import shapley
    from learners.data.client_data import ClientData, FederatedData, Split, classes, of_pictures
    from learners.rows.parameters import Layout
    from learners.rows.workspace import Workspace
    from learners.server.local_engine import local_engine
    from learners.settings.config import RunConfig

    torch.set_num_threads(1)
    states, images, labels, _ = six_models()
    config = RunConfig(clients=2, workers=int(workers))
    split = Split(images, labels)
    client = ClientData(split, split, split, "", False)
    module = network("lenet-5")
    layout = Layout.of(module)
    models = torch.stack([layout.pack(with_state(state)) for state in states])
    workspace = Workspace(module, layout, torch.device("cpu"))
    data = FederatedData("benchmark", (client, client), of_pictures(SHAPE), classes(CLASSES))
    site = Site(config, build_algorithm("fedavg", {}), workspace, data)
    engine = local_engine(site, int(workers))
    message = {"models": models, "with_own": False, "method": "exact"}
    engine.ask(shapley, {c: {**message, "models": models[:2]} for c in (0, 1)}, 0)  # compiles
    began = time.perf_counter()
    engine.ask(shapley, {0: message, 1: message}, 0)
    seconds = time.perf_counter() - began
    engine.close()
    return {"seconds": seconds}


def six_models():
    import torch

    from coalitions.enumeration import all_coalitions
    from learners.models import build_model

    stream = torch.Generator().manual_seed(1)
    images = torch.randn((1000, *SHAPE), generator=stream)
    labels = torch.randint(0, CLASSES, (1000,), generator=stream)
    models = [
        build_model("lenet-5", shape=SHAPE, n_classes=CLASSES, seed=seed) for seed in range(6)
    ]
    return [model.state_dict() for model in models], images, labels, all_coalitions(6)[1:]


def with_state(state):
    module = network("lenet-5")
    module.load_state_dict(state)
    return module


CONTENDERS = {
    "ours": ours,
    "plain": plain_loop,
    "flower": flower,
    "coalitions-plain": coalitions_plain,
    "coalitions-ours": coalitions_ours,
    "coalitions-two": coalitions_two,
}

# --- tables ---------------------------------------------------------------------------------


def rounds_table() -> None:
    print(
        "Per round, 10 clients × 200 images, batch 10, 1 epoch, tests each round: seconds of wall"
    )
    print("time (fastest round) and, in brackets, of processor time of all processes (mean)")
    print(f"{'network':<9}{'ours, 2 workers':>17}{'1 worker':>16}{'plain':>16}{'Flower':>16}"
          f"{'plain/ours':>15}{'Flower/ours':>15}   wanted")  # fmt: skip
    firsts = []
    contenders = {
        "two": ("ours", 2),
        "plain": ("plain",),
        "flower": ("flower",),
        "one": ("ours", 1),
    }
    for model in MODELS:
        times: dict[str, list[dict[str, float]]] = {
            name: [] for name in (*contenders, "our network")
        }
        for _ in range(REPEATS):
            for name, (contender, *more) in contenders.items():
                times[name].append(measured(contender, model, *more))
            times["our network"].append(measured("plain", model, "ours"))
        firsts += [each["first"] for each in times["flower"]]
        wall = {name: min(each["round"] for each in some) for name, some in times.items()}
        cpu = {name: min(each["cpu"] for each in some) for name, some in times.items()}
        cells = "".join(f"{wall[name]:>8.3f} ({cpu[name]:.2f}) "
                        for name in ("two", "one", "plain", "flower"))  # fmt: skip
        ratios = "".join(f"{wall[name] / wall['two']:>8.2f} ({cpu[name] / cpu['two']:.2f})"
                         for name in ("plain", "flower"))  # fmt: skip
        print(f"{model:<9}{cells}{ratios}   ≥ 2, ≥ {TARGETS[model]}", flush=True)
        print(f"         the plain loop with our order of ReLU and pool: {wall['our network']:.3f}"
              f" ({wall['our network'] / wall['two']:.2f} of ours)", flush=True)  # fmt: skip
    print(f"Flower's first round ends {min(firsts):.1f} s after its simulation starts")


def start_table() -> None:
    """Time the command as it is typed; the folder's first line of metrics ends the round."""
    import tempfile

    print("Seconds from typing `coalitions run` to the end of the first round (wanted: ≤ 5)")
    times = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            command = [str(Path(sys.executable).with_name("coalitions")), "run", "--rounds", "1",
                       "--out", f"{folder}/run", "--quiet"]  # fmt: skip
            began = time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            metrics = Path(folder) / "run" / "metrics.jsonl"
            while process.poll() is None and not metrics.exists():
                time.sleep(0.01)
            times.append(time.perf_counter() - began)
            process.wait()
    print(f"  fastest {min(times):.2f}   median {statistics.median(times):.2f}")


def utility_table() -> None:
    print("63 coalitions of six LeNet-5 models on 1000 images, seconds")
    plain = [measured("coalitions-plain") for _ in range(REPEATS)]
    game = [measured("coalitions-ours") for _ in range(REPEATS)]
    pairs = {w: min(measured("coalitions-two", w)["seconds"] for _ in range(REPEATS))
             for w in (1, 2)}  # fmt: skip
    loop = min(each["seconds"] for each in plain)
    one = min(each["seconds"] for each in game)
    print(f"  load_state_dict and forward {loop:.2f}   ours {one:.2f}   ratio {loop / one:.2f}"
          f"   (wanted: ≥ 1.3)")  # fmt: skip
    print(f"  identical counts of correct answers: {plain[0]['correct'] == game[0]['correct']}")
    print(f"  two clients' games, 1 worker {pairs[1]:.2f}   2 workers {pairs[2]:.2f}"
          f"   ratio {pairs[1] / pairs[2]:.2f}   (wanted: ≥ 1.6)")  # fmt: skip


def scaling_table() -> None:
    print("LeNet-5, 10 against 100 clients × 200 images, 2 workers")
    few = [measured("ours", "lenet-5", 2, 10) for _ in range(REPEATS)]
    many = [measured("ours", "lenet-5", 2, 100) for _ in range(REPEATS)]
    ten, hundred = (min(each["round"] for each in some) for some in (few, many))
    print(f"  seconds per round {ten:.3f} and {hundred:.3f}: ratio {hundred / ten:.1f}"
          f"   (wanted: ≤ 11)")  # fmt: skip
    print(f"  memory of the largest process above torch: {max(e['memory'] for e in many):.0f} MiB"
          f"   (wanted: ≤ 1024)")  # fmt: skip


def methods_table() -> None:
    from learners.algorithm import ALGORITHMS

    print("Seconds per round of each algorithm, LeNet-5, 10 clients × 200 images, 2 workers")
    base = measured("ours", "lenet-5", 2)["round"]
    for name in ALGORITHMS:
        seconds = measured("ours", "lenet-5", 2, CLIENTS, name)["round"]
        print(f"  {name:<12}{seconds:>8.3f}{seconds / base:>8.2f} × fedavg", flush=True)


TABLES = {
    "rounds": rounds_table,
    "start": start_table,
    "utility": utility_table,
    "scaling": scaling_table,
    "methods": methods_table,
}

if __name__ == "__main__":
    main()
