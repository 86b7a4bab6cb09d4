"""What came out of a run: figures, history and models, in memory or read from its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from coalitions.errors import DamagedFileError, InvalidInputError, with_keywords
from coalitions.plugins import import_plugins
from coalitions.results import PublicResult, Row
from coalitions.structure import Labels, numbering
from learners.data.client_data import Input, Kind, Targets
from learners.measures.scores import main_metric, score_of, scores_of_clients
from learners.models import build_model, network_for
from learners.rows.parameters import Layout
from learners.runs.folder import RunFolder, load_into
from learners.runs.inputs import MARK, Factory, UserInputs
from learners.runs.summary import summary
from learners.server.client_failures import left_out
from learners.settings.config import RunConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class Result(PublicResult):
    """What came out of a run.

    Attributes
    ----------
    config
        What was asked, complete.
    metrics
        Of the last round: accuracies and losses, see `metrics.jsonl`.
    communication
        Parameters and bytes, up and down, of the whole run.
    seconds
        Time of all rounds.
    history
        The metrics of every round.
    out
        The run's folder, if it has one.
    privacy
        The noise, and what its ε covers; None if nothing was clipped or noised.
    client_names
        What the clients are called.
    task
        What was learnt.
    new_clients
        Of the clients that were held out of training: how they got their models, and how good these
        are; None if there were none.
    """

    config: RunConfig
    metrics: Mapping[str, Any]
    communication: Mapping[str, int]
    seconds: float
    history: tuple[Mapping[str, Any], ...] = field(repr=False)
    out: Path | None = None
    privacy: Mapping[str, Any] | None = None
    client_names: tuple[str, ...] = ()
    task: Kind = "classification"
    new_clients: Mapping[str, Any] | None = None
    _models: tuple[Tensor | None, ...] = field(default=(), repr=False)
    _network: Callable[[], nn.Module] | None = field(default=None, repr=False)

    @property
    def mean_test_accuracy(self) -> float | None:
        """Mean over the honest clients of the accuracy on their own test data; None without one."""
        value: float | None = self.metrics["mean_test_accuracy"]
        return value

    @property
    def worst_client_accuracy(self) -> float | None:
        """The lowest of these accuracies."""
        value: float | None = self.metrics["worst_client_accuracy"]
        return value

    @property
    def per_client_test_accuracy(self) -> list[float | None]:
        """Every client's accuracy on its own test data."""
        return list(self.metrics["per_client_test_accuracy"] or ())

    @property
    def epsilon(self) -> float | None:
        """What the worst client has spent of its privacy; None if there is no finite figure."""
        value: float | None = self.metrics.get("epsilon")
        return value

    def model(self, client: int | str = 0) -> nn.Module:
        """Return the network a client, by number or name, ended with, ready to predict."""
        client = _number_of(client, self.client_names)
        if self.out is not None:
            return load_model(self.out, client, model=self._network)
        row = self._models[client] if 0 <= client < len(self._models) else None
        if self._network is None or row is None:
            raise InvalidInputError(
                f"there is no model of client {client}; clients are numbered 0 …"
                f" {len(self._models) - 1}"
            )
        network = self._network()
        return Layout.of(network).unpack(row, network).eval()

    @property
    def metric(self) -> str:
        """What the run is judged by: the first of its metrics, accuracy if it names none."""
        return main_metric(self.metrics)

    @property
    def named(self) -> dict[str, float | None]:
        """Each client's figure on its own test data, by name; see `metric`."""
        figures = score_of(self.metrics, self.metric).per_client
        return dict(zip(self.client_names, figures, strict=False))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, as ``result.json`` has it."""
        config = self.config
        scores = {
            key: value
            for key, value in self.metrics.items()
            if "test_accuracy" in key
            or "client_accuracy" in key
            or "test_loss" in key
            or key == "per_client_kept_round"
        }
        metrics = {key: value for key, value in self.metrics.items() if key.endswith("metrics")}
        return {
            "algorithm": config.algorithm,
            "dataset": config.dataset,
            "clients": config.clients,
            "rounds": config.rounds,
            "seed": config.seed,
            "task": self.task,
            **scores,
            **metrics,
            **({} if self.new_clients is None else {"new_clients": dict(self.new_clients)}),
            "client_names": list(self.client_names),
            "communication": dict(self.communication),
            "epsilon": self.epsilon,
            "privacy": None if self.privacy is None else dict(self.privacy),
            "left_out": left_out(self.history),
            "seconds": self.seconds,
            "out": None if self.out is None else str(self.out),
        }

    def _rows(self) -> list[Row]:
        metrics = list(self.metrics.get("metrics") or {}) or [self.metric]
        clients = {name: scores_of_clients(self.metrics, name) for name in metrics}
        return [
            {"client": client, "metric": name, "value": value}
            for name, values in clients.items()
            for client, value in zip(self.client_names, values, strict=False)
        ]

    def _below(self) -> str:
        return "\n".join(f"{key:<22}{value}" for key, value in summary(self.to_dict()).items())

    def __str__(self) -> str:
        """Return what ``coalitions run`` prints."""
        return self._below()

    def plot(self, path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure: what the run is judged by, round by round.

        Parameters
        ----------
        path
            Where to write the picture as well: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        from coalitions.drawing.figures import drawn

        return drawn({"rounds": _by_round}, None, path, self)


def _by_round(result: Result) -> Figure:
    from coalitions.drawing.pictures import new_figure

    metric = result.metric
    rounds, means = [], []
    for number, line in enumerate(result.history, 1):
        figures = [each for each in scores_of_clients(line, metric) if each is not None]
        if figures:  # a round that was not evaluated has none
            rounds.append(number)
            means.append(score_of(line, metric).mean)
    figure = new_figure(7, 4)
    axes = figure.subplots()
    axes.plot(rounds, means, marker="o", markersize=3)
    axes.set_xlabel("round")
    axes.set_ylabel(f"mean test {metric}")
    axes.set_title(f"{result.config.algorithm} on {result.config.dataset}", fontsize=10)
    axes.spines[["right", "top"]].set_visible(False)
    return figure


def finished_result(folder: RunFolder, config: RunConfig) -> Result | None:
    """Return what a folder has of a finished run with these settings; None if it is not yet."""
    finished = folder.result()
    if finished is None:
        return None
    folder.check_finished(config)
    history = folder.history()
    if len(history) != config.rounds:
        raise DamagedFileError(
            f"{folder.path / 'metrics.jsonl'} is damaged: it has {len(history)} rounds, and the"
            f" finished run had {config.rounds}"
        )
    return Result(
        config=config,
        metrics=history[-1],
        communication=finished["communication"],
        seconds=finished["seconds"],
        history=tuple(history),
        out=folder.path,
        privacy=finished.get("privacy"),
        client_names=tuple(finished.get("client_names", ())),
        task=finished.get("task", "classification"),
        new_clients=finished.get("new_clients"),
    )


def _number_of(client: int | str, names: Sequence[str]) -> int:
    return numbering(Labels(tuple(names)), "client")(client) if isinstance(client, str) else client


@with_keywords()
def load_model(
    out: str | Path, client: int | str = 0, *, model: Factory | None = None
) -> nn.Module:
    """Return the network that a client, by number or name, ended with, from a run's folder.

    `model` is what `run` was given, if the network is the user's own.
    """
    folder = RunFolder.open(Path(out))
    config = folder.config()
    import_plugins(config.plugins)
    names = (folder.result() or {}).get("client_names", ())
    tensors, about = folder.read_model(_number_of(client, names))
    if MARK in about["model"]:
        if model is None:
            raise InvalidInputError(
                f"{out} was made with a network of its user's own; give it again, as model="
            )
        return load_into(UserInputs(model=model).network(config.seed), tensors)
    return load_into(_network_of(about, config.seed), tensors)


def _network_of(about: Mapping[str, Any], seed: int) -> nn.Module:
    """Return the network that a model's file tells of."""
    if "inputs" not in about:
        shape = tuple(about["shape"])
        return build_model(about["model"], shape=shape, n_classes=about["n_classes"], seed=seed)
    inputs = {
        name: Input(tuple(each["shape"]), tuple(each["codes"]))
        for name, each in about["inputs"].items()
    }
    target = about["targets"]
    targets = Targets(target["kind"], target["n_outputs"], tuple(target["names"]))
    return network_for(about["model"], inputs, targets, seed=seed)
