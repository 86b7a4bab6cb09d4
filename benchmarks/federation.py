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

import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

CLIENTS, TRAIN, TEST, BATCH, LR = 10, 200, 50, 10, 0.01
SHAPE, CLASSES = (1, 28, 28), 10
REPEATS, ROUNDS = 3, 6
TARGETS = {"lenet-5": 1.8, "cnn": 1.4}


def main() -> None:
    if sys.argv[1:2] == ["--contender"]:
        print(json.dumps(CONTENDERS[sys.argv[2]](*sys.argv[3:])))
        return
    wanted = sys.argv[1:] or list(TABLES)
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


# --- contenders -----------------------------------------------------------------------------


def federation(model: str, workers: int, n_clients: int = CLIENTS, algorithm: str = "fedavg"):
    import torch

    from learners.algorithm import build_algorithm
    from learners.client import Site
    from learners.config import RunConfig
    from learners.data.clients import ClientData, FederatedData, Split
    from learners.engines.local import local_engine
    from learners.federation import Federation
    from learners.parameters import Layout
    from learners.workspace import Workspace

    config = RunConfig(
        algorithm=algorithm,
        clients=n_clients,
        rounds=ROUNDS,
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
    data = FederatedData("benchmark", clients, CLASSES, SHAPE)
    method = build_algorithm(algorithm, {})
    site = Site(config, method, workspace, data)
    engine = local_engine(site, workers)
    return Federation(config, method, engine, workspace.layout, site.initial), engine


def ours(model: str, workers: str, n_clients: str = str(CLIENTS), algorithm: str = "fedavg"):
    import torch

    torch.set_num_threads(1)
    before = memory()
    server, engine = federation(model, int(workers), int(n_clients), algorithm)
    times = [round.metrics["seconds"] for round in server.rounds()]
    engine.close()
    return {"round": min(times[1:]), "memory": memory() - before}


def memory() -> float:
    """Return the peak memory of this process and of all its children, in MiB."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return max(own, children) / 1024


def plain_loop(model: str):
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
    module = network(model)
    server = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
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
        times.append(time.perf_counter() - began)
    return {"round": min(times[1:])}


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
    began = time.perf_counter()
    moments: list[float] = []
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
            moments.append(time.perf_counter())

        strategy = FedAvg(min_train_nodes=CLIENTS, min_evaluate_nodes=CLIENTS,
                          min_available_nodes=CLIENTS)  # fmt: skip
        strategy.start(
            grid=grid,
            initial_arrays=ArrayRecord(network(model).state_dict()),
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
    rounds = [after - before for before, after in itertools.pairwise(moments)]
    return {"round": min(rounds[1:]), "first": moments[1] - began}


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
        KEPT["network"] = network(model)
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

    from learners.client import LocalImages
    from learners.data.clients import Split
    from learners.parameters import Layout
    from learners.utility import ModelGame
    from learners.workspace import Workspace

    torch.set_num_threads(1)
    states, images, labels, rows = six_models()
    module = network("lenet-5")
    layout = Layout.of(module)
    models = torch.stack([layout.pack(with_state(state)) for state in states])
    workspace = Workspace(module, layout, torch.device("cpu"))
    data = LocalImages(Split(images, labels), torch.device("cpu"))
    game = ModelGame(workspace, models, data, n_classes=CLASSES)
    began = time.perf_counter()
    values = game(rows)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "correct": [round(value * 1000) for value in values]}


def coalitions_two(workers: str) -> dict[str, float]:
    """Two clients, each with the exact Shapley values of six models."""
    import torch

    from learners.algorithm import build_algorithm
    from learners.client import Site
    from learners.config import RunConfig
    from learners.data.clients import ClientData, FederatedData, Split
    from learners.engines.local import local_engine
    from learners.parameters import Layout
    from learners.tasks import shapley
    from learners.workspace import Workspace

    torch.set_num_threads(1)
    states, images, labels, _ = six_models()
    config = RunConfig(clients=2, workers=int(workers))
    split = Split(images, labels)
    client = ClientData(split, split, split, "", False)
    module = network("lenet-5")
    layout = Layout.of(module)
    models = torch.stack([layout.pack(with_state(state)) for state in states])
    workspace = Workspace(module, layout, torch.device("cpu"))
    data = FederatedData("benchmark", (client, client), CLASSES, SHAPE)
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
    print("Seconds per round, 10 clients × 200 images, batch 10, 1 epoch, tests each round")
    print(f"{'network':<10}{'ours':>9}{'1 worker':>10}{'plain':>9}{'Flower':>9}"
          f"{'plain/ours':>12}{'Flower/ours':>13}   wanted")  # fmt: skip
    firsts = []
    for model in ("lenet-5", "cnn"):
        times: dict[str, list[float]] = {"two": [], "one": [], "plain": [], "flower": []}
        for _ in range(REPEATS):
            times["two"].append(measured("ours", model, 2)["round"])
            times["plain"].append(measured("plain", model)["round"])
            answer = measured("flower", model)
            times["flower"].append(answer["round"])
            firsts.append(answer["first"])
            times["one"].append(measured("ours", model, 1)["round"])
        two, one, plain, other = (min(times[each]) for each in ("two", "one", "plain", "flower"))
        print(f"{model:<10}{two:>9.3f}{one:>10.3f}{plain:>9.3f}{other:>9.3f}"
              f"{plain / two:>12.2f}{other / two:>13.2f}   ≥ 2, ≥ {TARGETS[model]}")  # fmt: skip
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
