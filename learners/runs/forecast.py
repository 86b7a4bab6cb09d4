"""What a run would take, before it is run: time, memory and traffic, from a rehearsal.

The server's program is rehearsed for two rounds as it is, with all its clients, but of every task
one client's share is computed (of a stack, that of some), and the others repeat that client's
answer. So what is sent is counted by the real ledger, what is kept is weighed, and the time of one
client is measured and multiplied. Processor time is what is measured: other work on the machine
does not disturb it.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from learners.client.client import Client, ClientAnswer, Samples, Site, answer
from learners.client.stacked_testing import pays
from learners.client.stacked_training import Stacking
from learners.client.tasks import describe, evaluate
from learners.client.training import EVALUATION_CHUNK, client_loss
from learners.data.client_data import FederatedData
from learners.measures.losses import LossFunction
from learners.measures.metrics import OwnMetric
from learners.rows.workspace import predicted
from learners.runs.inputs import Clients, Factory, UserInputs
from learners.runs.prepare import prepare
from learners.server.engine import Ledger, Replies, Traffic
from learners.server.federation import Federation
from learners.server.local_engine import compute, n_workers, one_thread, stacked_engine
from learners.settings.config import RunConfig
from learners.task import Message, Task

ROUNDS = 2
"""Rounds that are rehearsed: the first gets everything going, the second stands for the others."""

MOST_STACKED = 16
"""Clients of a stack that are computed at most; their time is multiplied."""

MOST_BATCHES = 20
"""Batches of a pass that a rehearsing client computes at most; its time is multiplied."""


@dataclass(frozen=True)
class CostForecast:
    """What a run would take.

    Attributes
    ----------
    config
        The run, complete.
    seconds
        Of all rounds if the cores have nothing else to do; writing files is not in it.
    setup_seconds
        From the configuration to the first round.
    workers
        Processes that clients are computed in.
    memory
        Bytes: `rehearsal` is the most that this process had, with all data, the server and one
        client at work, or some clients stacked; `clients` what the others keep and send, which
        only one did; `workers` what a client's work takes in every process of its own; `stack`
        what the whole stack takes beyond the rehearsed one, where clients are stacked.
    traffic
        Of the whole run: exact, or the most it can be.
    exact
        Whether it is exact, provided that no answer has to be refused.
    remark
        What would be done with your own data, in a sentence.
    """

    config: RunConfig
    seconds: float
    setup_seconds: float
    workers: int
    memory: Mapping[str, int]
    traffic: Traffic
    exact: bool
    remark: str = ""

    def document(self) -> dict[str, Any]:
        """Return the forecast as plain values."""
        sent: dict[str, int | None] = dict(vars(self.traffic))
        if not self.exact:  # the numbers beside the parameters are not bounded
            sent |= {"bytes_up": None, "bytes_down": None}
        return {
            "config": self.config.values(),
            "time": {
                "seconds": self.seconds,
                "seconds_per_round": self.seconds / self.config.rounds,
                "setup_seconds": self.setup_seconds,
                "workers": self.workers,
            },
            "memory": {"bytes": sum(self.memory.values()), **self.memory},
            "traffic": {**sent, "exact": self.exact},
        }

    def sentences(self) -> list[str]:
        """Return the forecast in words."""
        rounds, processes = _counted(self.config.rounds, "round"), self.workers
        parts = ", ".join(f"{_size(part)} {name}" for name, part in self.memory.items() if part)
        how = "exactly" if self.exact else "at most"
        return [
            f"time: about {self.seconds:.3g} s for {rounds} in"
            f" {_counted(processes, 'process', 'processes')} on free cores, after"
            f" {self.setup_seconds:.1f} s to begin",
            f"memory: about {_size(sum(self.memory.values()))}, of that {parts}",
            f"traffic: {how} {self.traffic.up:,} parameters up and {self.traffic.down:,} down",
        ]


def forecast(
    config: Mapping[str, Any] | RunConfig,
    *,
    data: Clients | FederatedData | None = None,
    model: Factory | None = None,
    loss: str | LossFunction | None = None,
    metrics: Sequence[str | OwnMetric] = (),
    target: str | None = None,
    client_column: str | None = None,
) -> CostForecast:
    """Return what a run would take; what the run would refuse at once is refused here.

    Nothing is written, and nothing that was trained is kept.

    Parameters
    ----------
    config
        Settings by name.
    data, model, loss, metrics, target, client_column
        What `run` would be given beside them.

    Examples
    --------
    >>> expected = forecast({"algorithm": "fedavg", "clients": 3, "rounds": 5, "workers": 1})
    >>> expected.exact, expected.traffic.up  # the network has 55 210 parameters
    (True, 828150)
    """
    began = time.process_time()
    prepared = prepare(
        RunConfig.of(config), UserInputs(data, model, loss, tuple(metrics), target, client_column)
    )
    config, site = prepared.config, prepared.site
    setup_seconds = time.process_time() - began
    engine = _Rehearsal(site, n_workers(site, config.workers))
    # A rehearsal may be longer than the run, and its clients share the memory of one of them: what
    # it spends says nothing of the run, so no ε is held against it.
    privacy = None if site.privacy is None else replace(site.privacy, target=None)
    federation = Federation(
        replace(config, rounds=ROUNDS, evaluate_every=1),
        site.algorithm,
        engine,
        site.workspace.layout,
        site.initial,
        privacy,
        site.workspace.goal,
    )
    at_server = []
    with one_thread():
        began, asked = time.process_time(), 0.0
        for _ in federation.rounds():
            at_server.append(time.process_time() - began - (engine.spent - asked))
            began, asked = time.process_time(), engine.spent
        peak = _most_resident()
        work = 0 if engine.workers == 1 else engine.workers * _work(site)
    kept = sum(map(_weight, engine.memories().values()))
    memory = {
        "rehearsal": peak,
        "clients": (kept + engine.most_replies) * (config.clients - 1) // config.clients,
        "workers": work,
    } | ({"stack": engine.stack_bytes} if compute(site) == "stacked" else {})
    traffic = _bound(
        config,
        site.algorithm.most_traffic(site.workspace.layout, config.participants, site.n_classes),
    )
    return CostForecast(
        config,
        seconds=_seconds(config, engine, at_server),
        setup_seconds=setup_seconds,
        workers=engine.workers,
        memory=memory,
        traffic=_total(federation.ledger, config.rounds) if traffic is None else traffic,
        exact=traffic is None,
        remark=prepared.remark,
    )


class _Rehearsal:
    """An engine where one client does what all are asked, and the others repeat its answer.

    Attributes
    ----------
    workers
        Processes there would be.
    spent
        Processor time of what was computed.
    method, watching
        What the clients' tasks would take in each round, and the tests, which not all rounds have.
    most_replies
        Bytes of the replies to a question that were largest.
    """

    def __init__(self, site: Site, workers: int) -> None:
        self.workers = workers
        self.spent = 0.0
        self.method, self.watching = np.zeros(ROUNDS + 1), np.zeros(ROUNDS + 1)
        self.most_replies = 0
        self._site = site
        self._memories: dict[int, dict[str, Any]] = {}
        self._stack = _SmallStack(site) if compute(site) == "stacked" else None

    @property
    def stack_bytes(self) -> int:
        """What a whole stack takes more than the one that was rehearsed."""
        return 0 if self._stack is None else self._stack.missing_bytes

    def ask(self, task: Task, messages: Mapping[int, Message], round: int) -> Replies:
        began = time.process_time()
        try:
            if task is describe:  # no work, and a method may go by what clients really have
                given = {c: answer(self._site, task, c, round, {}, {}) for c in messages}
                return Replies({c: each.reply or {} for c, each in given.items()})
            return self._rehearsed(task, messages, round)
        finally:
            self.spent += time.process_time() - began

    def _rehearsed(self, task: Task, messages: Mapping[int, Message], round: int) -> Replies:
        sizes = {c: max(1, len(self._site.data[c].train)) for c in sorted(messages)}
        actor = sorted(sizes, key=lambda c: (sizes[c], c))[len(sizes) // 2]
        site, share = _shortened(self._site, actor)
        memory = self._memories.get(actor, {})
        began = time.process_time()
        if self._stack is None:
            given = answer(site, task, actor, round, messages[actor], memory)
            done = share * sizes[actor]
        else:
            given, done = self._stack.rehearsed(task, messages, round, sizes, actor, memory)
        of_an_image = (time.process_time() - began) / done
        each = [of_an_image * size for size in sizes.values()]
        book = self.watching if task is evaluate else self.method
        book[round] += max(max(each), sum(each) / self.workers)
        if given.reply is None:
            return Replies({}, dict.fromkeys(sizes, given.reason or ""))
        self.most_replies = max(self.most_replies, len(sizes) * _weight(given.reply))
        if given.memory is not None:
            self._memories |= {c: dict(given.memory) for c in sizes}
        if task.watches or "samples" not in given.reply:
            return Replies(dict.fromkeys(sizes, given.reply))
        # Nobody may claim to have more images than it has.
        own = {c: len(self._site.data[c].train) for c in sizes}
        return Replies({c: {**given.reply, "samples": n} for c, n in own.items()})

    def memories(self) -> dict[int, dict[str, Any]]:
        return self._memories

    def restore(self, memories: Mapping[int, Mapping[str, Any]]) -> None:
        raise NotImplementedError("a rehearsal is not resumed")

    def close(self) -> None:
        pass


class _SmallStack:
    """Some of the clients that would train at once, which stand for all of them.

    Attributes
    ----------
    missing_bytes
        What a stack of all, or of as many as fit, would take beyond this one.
    """

    def __init__(self, site: Site) -> None:
        data = tuple(_shortened(site, c)[0].data[c] for c in range(len(site.data)))
        self._whole, self._site = site, site.with_data(data)
        self._stacking = Stacking(tests=pays(site.workspace.device))
        self._engine = stacked_engine(self._site, self._stacking)
        self.missing_bytes = 0

    def rehearsed(
        self,
        task: Task,
        messages: Mapping[int, Message],
        round: int,
        sizes: Mapping[int, int],
        actor: int,
        memory: Message,
    ) -> tuple[ClientAnswer, float]:
        """Return the answer of one client, and how many images were computed on for it."""
        among = sorted(sizes, key=lambda c: (abs(sizes[c] - sizes[actor]), c))[:MOST_STACKED]
        self._engine.restore({c: memory for c in among})
        replies = self._engine.ask(task, {c: messages[c] for c in among}, round)
        each, models = self._stacking.bytes_of_a_client, self._stacking.models_of_a_client
        fitting = max(2, self._stacking.most_bytes // each) if each else 0
        missing = min(models * len(messages), fitting) - min(models * len(among), fitting)
        self.missing_bytes = max(self.missing_bytes, missing * each)
        done = sum(max(1, len(self._site.data[c].train)) for c in among)
        if actor in replies.refused:
            return ClientAnswer(None, reason=replies.refused[actor]), done
        return ClientAnswer(replies.replies[actor], self._engine.memories().get(actor)), done


def _shortened(site: Site, client: int) -> tuple[Site, float]:
    """Return a site where a client has few enough images to be quick, and their share of all."""
    whole = site.data[client]
    most = MOST_BATCHES * site.config.batch_size
    if len(whole.train) <= most:
        return site, 1.0
    share = most / len(whole.train)
    some = replace(
        whole,
        train=whole.train.first(most),
        validation=whole.validation.first(math.ceil(share * len(whole.validation))),
        test=whole.test.first(math.ceil(share * len(whole.test))),
    )
    return site.with_data((*site.data[:client], some, *site.data[client + 1 :])), share


def _seconds(config: RunConfig, engine: _Rehearsal, at_server: list[float]) -> float:
    """Return the time of all rounds, from that of the rehearsed ones."""
    evaluations = config.rounds // config.evaluate_every
    evaluations += config.rounds % config.evaluate_every > 0
    first, other = engine.method[1] + at_server[0], engine.method[2] + at_server[1]
    # What the first round takes longer is the warming up of one process, not of every client.
    warming_up = max(0.0, first - other) / max(1, config.participants / engine.workers)
    total = other * config.rounds + engine.watching[2] * evaluations + warming_up
    return float(total)


def _bound(config: RunConfig, of_client: tuple[int, int] | None) -> Traffic | None:
    if of_client is None:
        return None
    times = config.rounds * config.participants
    return Traffic(up=times * of_client[0], down=times * of_client[1])


def _total(ledger: Ledger, rounds: int) -> Traffic:
    """Return the traffic of a run whose rounds are all as the second."""
    start, first, other = ledger.counts.sum(axis=1)
    return Traffic(*map(int, start + first + (rounds - 1) * other))


def _work(site: Site) -> int:
    """Return what a process holds while it trains or tests a client's model, in bytes."""
    workspace = site.workspace
    # The model, its gradient, what was received, what will be sent, and the optimiser's moments.
    rows = 4 + {"sgd": int(site.config.momentum > 0)}.get(site.config.optimizer, 2)
    client = Client(site, max(range(len(site.data)), key=lambda c: len(site.data[c].train)), 0)
    train, test = client.data.train, client.data.test
    batch = torch.arange(min(site.config.batch_size, len(train)))
    saved: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    workspace.load(site.initial)
    workspace.module.train()
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda kept: kept):
        client_loss(client)(workspace.module, *train.take(batch))
    saved.pop(workspace.row.untyped_storage().data_ptr(), None)
    in_training = 2 * sum(saved.values())  # the gradients of activations are as large
    in_test = _widest_layer(site, test.first(EVALUATION_CHUNK))
    return rows * site.initial.nbytes + max(in_training, in_test)


def _widest_layer(site: Site, images: Samples) -> int:
    """Return the bytes of a layer's input and output, where they are most, without gradients."""
    module, most = site.workspace.module, 0

    def watch(_: object, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal most
        most = max(most, output.nbytes + sum(each.nbytes for each in inputs))

    hooks = [
        part.register_forward_hook(watch)
        for part in module.modules()
        if not any(True for _ in part.children())
    ]
    module.eval()
    with torch.inference_mode():
        for some, _ in images.chunks(EVALUATION_CHUNK):
            predicted(module, some)
    for hook in hooks:
        hook.remove()
    return most


def _weight(values: Mapping[str, Any]) -> int:
    """Return the bytes of tensors and arrays."""
    arrays = (value for value in values.values() if isinstance(value, (Tensor, np.ndarray)))
    return sum(each.nbytes for each in arrays)


def _most_resident() -> int:
    """Return the most memory this process has had, in bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _size(n_bytes: int) -> str:
    power = max(1, min(4, int(math.log10(max(1, n_bytes)) // 3)))
    return f"{n_bytes / 1000**power:.3g} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


def _counted(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"
