"""pFedSV: Figs. 2, 3, 4, 6 and 7, and the likeness of layers, all from runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from learners.data.ground_truth import detection, label_overlap
from learners.reproduction.claims import Claim, Measured, above, beyond, exact, mostly
from learners.reproduction.experiment import (
    EXPERIMENTS,
    AccuracyTable,
    Experiment,
    Key,
    Results,
    Scale,
    TableRow,
    clients_of,
    record_of,
)
from learners.reproduction.experiments.pfedsv_tables import SMOKE
from learners.runs.reading import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from learners.runs.result import Result

_SMOKE_NOTE = "Digits of scikit-learn, two rounds: the figures mean nothing."


def _federation(scale: Scale, data: str, partition: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return ten clients with LeNet-5 on some images, or the smallest federation there is."""
    if scale == "smoke":
        return {**SMOKE, "dataset": "digits", "partition": partition}
    small = {
        "clients": 10, "model": "lenet-5", "rounds": 20, "local_epochs": 5, "lr": 0.05,
        "train_size": 200, "test_size": 100,
    }  # fmt: skip
    whole = {
        "clients": 10, "model": "cnn", "rounds": 20, "local_epochs": 5,
        "lr": 0.1 if data.startswith("cifar") else 0.01,
    }  # fmt: skip
    return {
        **(small if scale == "small" else whole), "dataset": data, "partition": partition, **more,
    }  # fmt: skip


def _notes(scale: Scale, *told: str, images: str = "200 images a client") -> list[str]:
    """Return what is told at every scale but the smallest, after what the small one has less of."""
    if scale == "smoke":
        return [_SMOKE_NOTE]
    less = f"{images}, LeNet-5, lr 0.05 (the paper: McMahan's CNN, 0.01, 0.1 for CIFAR-10)."
    return [less, *told] if scale == "small" else list(told)


def _truth(record: RunRecord) -> NDArray[np.bool_]:
    assert record.clients is not None
    return label_overlap(record.clients.labels)


@EXPERIMENTS.register("pfedsv-fig2")
class Fig2(Experiment):
    """What irrelevant clients do to a client's model: FedAvg with all, and with the relevant."""

    def runs(self, scale: Scale) -> Mapping[Key, Mapping[str, Any]]:
        """Return client A with everyone, and with B and C alone, who share its labels."""
        friends = "0,2,4,6,8/0,2,4/6,8"
        everyone = f"{friends}/1,3,5/7,9"
        return {
            (row, ""): TableRow("fedavg").run(
                {
                    **_federation(scale, "mnist", f"labels:{labels}"),
                    "clients": labels.count("/") + 1,
                }
            )
            for row, labels in (("all five", everyone), ("A, B, C", friends))
        }

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return the accuracy of client A after the last round."""
        return Measured(
            ("client A",),
            {
                row: {"client A": [_of_a(run)[-1] for run in runs]}
                for (row, _), runs in results.items()
            },
        )

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that A is better off with those who share its labels."""
        return [above(found, "A, B, C", "all five", "client A")]

    def figures(self, found: Measured, results: Results, scale: Scale) -> Mapping[str, Figure]:
        """Return the accuracy of client A over the rounds."""
        from learners.reproduction.pictures import curves

        lines = {row: [_of_a(run) for run in runs] for (row, _), runs in results.items()}
        return {"figure": curves(lines, self.title, "round", "accuracy of client A, %")}

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return what differs."""
        return _notes(scale, "A: even digits; B: 0, 2, 4; C: 6, 8; D: 1, 3, 5; E: 7, 9.")


def _of_a(run: Result) -> list[float]:
    return [100 * line["per_client_test_accuracy"][0] for line in run.history]


@EXPERIMENTS.register("pfedsv-fig3")
class Fig3(Experiment):
    """Whether models that are near to each other belong to clients that share labels."""

    def runs(self, scale: Scale) -> Mapping[Key, Mapping[str, Any]]:
        """Return local training on two labels each."""
        return {("local", ""): TableRow("local").run(_federation(scale, "cifar10", "distinct:2"))}

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return distances to those who share labels and to others, and how often they mislead."""
        runs = results["local", ""]
        near, far, wrong, misled = [], [], [], []
        for run in runs:
            squares, truth = _squared_distances(run), _truth(record_of(run))
            others = ~truth & ~np.eye(len(truth), dtype=bool)
            near.append(float(squares[truth].mean()))
            far.append(float(squares[others].mean()))
            pairs = [
                squares[i, others[i]][None, :] < squares[i, truth[i]][:, None]
                for i in range(len(truth))
            ]
            wrong.append(100 * float(np.mean(np.concatenate([each.ravel() for each in pairs]))))
            misled.append(100 * float(np.mean([each.any() for each in pairs])))
        return Measured(
            ("all clients",),
            {
                "squared distance, shared label": {"all clients": near},
                "squared distance, no shared label": {"all clients": far},
                "pairs in the wrong order": {"all clients": wrong},
                MISLED: {"all clients": misled},
            },
            "‖θ_i − θ_j‖² or %",
        )

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that distances can mislead: somebody else is nearer than a friend.

        The paper shows one client. That most are misled is asked beside it.
        """
        misled = found.rows[MISLED]["all clients"]
        text = "model distance misleads some client with every seed (% of clients, the fewest)"
        most = "model distance misleads most clients (% of them, above 50)"
        return [
            exact(text, min(misled)),
            beyond(most, misled, 50.0, added=True, confidence=found.confidence),
        ]

    def figures(self, found: Measured, results: Results, scale: Scale) -> Mapping[str, Figure]:
        """Return the distance of every other model from client A's, of the first seed."""
        from learners.reproduction.pictures import bars

        run = results["local", ""][0]
        squares, truth = _squared_distances(run), _truth(record_of(run))
        others = range(1, len(truth))
        names = [
            f"client {i}, {'shares a label' if truth[0, i] else 'shares none'}" for i in others
        ]
        figure = bars(
            squares[0, 1:],
            names,
            truth[0, 1:],
            "How far models are from client 0's",
            "‖θ_0 − θ_i‖²",
        )
        return {"figure": figure}

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return what differs, and who is misled."""
        return _notes(
            scale,
            "A client is misled if somebody with whom it shares no label has a model nearer to its"
            " own than somebody with whom it does. The paper shows one client.",
        )


MISLED = "clients that are misled"


def _squared_distances(run: Result) -> NDArray[np.float64]:
    rows = torch.stack(
        [
            torch.nn.utils.parameters_to_vector(run.model(c).parameters()).detach().double()
            for c in range(run.config.clients)
        ]
    )
    distances: NDArray[np.float64] = (torch.cdist(rows, rows) ** 2).numpy()
    return distances


@EXPERIMENTS.register("pfedsv-fig4")
class Fig4(AccuracyTable):
    """Multiwise against pairwise weights, where everyone is told who is relevant."""

    ours = "multiwise"

    def methods(self, scale: Scale) -> Mapping[str, TableRow]:
        """Return Shapley values, two similarities, and the gain of each model alone."""
        kinds = {
            "multiwise": "multiwise", "pairwise, distance": "similarity",
            "pairwise, cosine": "cosine", "pairwise, gain": "pairwise",
        }  # fmt: skip
        return {
            row: TableRow("pfedsv", {"told": True, "collaboration": kind})
            for row, kind in kinds.items()
        }

    def federations(self, scale: Scale) -> Mapping[str, Mapping[str, Any]]:
        """Return ten clients with two labels each; most images are for the games."""
        more = {"train_size": 300, "validation_share": 2 / 3} if scale == "small" else {}
        return {"accuracy": _federation(scale, "cifar10", "distinct:2", **more)}

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that Shapley values lead each of the others."""
        rivals = [row for row in found.rows if row != self.ours]
        return [
            above(found, self.ours, row, "accuracy", added=row == "pairwise, gain")
            for row in rivals
        ]

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return what differs."""
        images = "100 images to train on and 200 for the games (the paper says no numbers)"
        return _notes(scale, images=images)


@EXPERIMENTS.register("pfedsv-fig6")
class Fig6(Experiment):
    """Dirichlet splits of MNIST: the smaller α, the fewer labels a client has."""

    alphas = (0.1, 0.5, 1.0, 10.0)

    def runs(self, scale: Scale) -> Mapping[Key, Mapping[str, Any]]:
        """Return runs of one round without a lesson to speak of: they deal the data."""
        small = {"rounds": 1, "local_epochs": 1, "train_size": 30 if scale == "smoke" else 200}
        return {
            (f"α = {alpha:g}", ""): TableRow("local").run(
                {**_federation(scale, "mnist", f"dirichlet:{alpha:g}"), **small}
            )
            for alpha in self.alphas
        }

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return how many labels a client has, counted by their entropy."""
        rows = {
            row: {"labels a client": [_labels_held(record_of(run)) for run in runs]}
            for (row, _), runs in results.items()
        }
        return Measured(("labels a client",), rows, "exp of the entropy")

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that every α has fewer labels than the next larger one."""
        rows = list(found.rows)
        return [
            above(found, more, fewer, "labels a client") for fewer, more in itertools.pairwise(rows)
        ]

    def figures(self, found: Measured, results: Results, scale: Scale) -> Mapping[str, Figure]:
        """Return the images of each label at each client."""
        from learners.reproduction.pictures import matrices

        panels = {}
        for (row, _), runs in results.items():
            panels[row] = clients_of(runs[0]).labels.astype(np.float64)
        return {"figure": matrices(panels, "Images of each label (columns) at each client (rows)")}

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return what differs."""
        return [_SMOKE_NOTE] if scale == "smoke" else ["200 images a client."]


def _labels_held(record: RunRecord) -> float:
    assert record.clients is not None
    shares = record.clients.labels / record.clients.labels.sum(axis=1, keepdims=True)
    logs = np.log(np.where(shares > 0, shares, 1.0))
    return float(np.exp(-(shares * logs).sum(axis=1)).mean())


@EXPERIMENTS.register("pfedsv-fig7")
class Fig7(Experiment):
    """Who is found relevant to whom: pFedSV and FedFomo beside the truth."""

    def runs(self, scale: Scale) -> Mapping[Key, Mapping[str, Any]]:
        """Return both methods on two labels each."""
        shared = _federation(scale, "mnist", "distinct:2")
        return {
            ("pFedSV", ""): TableRow("pfedsv").run(shared),
            ("FedFomo", ""): TableRow("fedfomo").run(shared),
        }

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return precision and recall of positive relevance after the last round."""
        rows: dict[str, dict[str, list[float]]] = {}
        for (row, _), runs in results.items():
            found = [detection(_last(run), _truth(record_of(run))) for run in runs]
            rows[row] = {
                "precision": [100 * each.precision for each in found],
                "recall": [100 * each.recall for each in found],
            }
        return Measured(("precision", "recall"), rows)

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that pFedSV finds all relevant clients and no other, and FedFomo does not.

        Whoever finds nobody has found nobody wrong, so precisions are not compared.
        """
        ours = found.rows["pFedSV"]
        perfect = [
            precision == recall == 100
            for precision, recall in zip(ours["precision"], ours["recall"], strict=True)
        ]
        text = "pFedSV finds all relevant clients and no other"
        return [
            mostly(text, perfect, confidence=found.confidence),
            above(found, "pFedSV", "FedFomo", "recall", points=False),
            Claim("3 samples for each model are enough for Shapley values", None, None),
            *(
                beyond(
                    f"pFedSV's {column} is above 95 %",
                    ours[column],
                    95.0,
                    added=True,
                    confidence=found.confidence,
                )
                for column in found.columns
            ),
        ]

    def figures(self, found: Measured, results: Results, scale: Scale) -> Mapping[str, Figure]:
        """Return the relevance matrices and the truth."""
        from learners.reproduction.pictures import matrices

        panels = {row: _last(runs[0]) for (row, _), runs in results.items()}
        first = next(iter(results.values()))[0]
        panels["truth"] = _truth(record_of(first)).astype(np.float64)
        return {"figure": matrices(panels, "Relevance of clients (columns) to clients (rows)")}

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return what differs."""
        return _notes(
            scale,
            "Relevance is what a method uses after the last round: pFedSV's scores are a mean over"
            " rounds, FedFomo's weights are of that round alone, and nobody helps at its end. So"
            " its precision says only that nobody was found.",
            "Shapley values are exact in all tables here: no run tells whether the paper's three"
            " samples for each model are enough.",
        )


def _last(run: Result) -> NDArray[np.float64]:
    last: NDArray[np.float64] = record_of(run).arrays["relevance"][-1]
    return last


@EXPERIMENTS.register("pfedsv-cka")
class Likeness(Experiment):
    """Feature extractors of different clients are alike, their classifiers are not (CKA)."""

    def runs(self, scale: Scale) -> Mapping[Key, Mapping[str, Any]]:
        """Return local training on two labels each."""
        return {("local", ""): TableRow("local").run(_federation(scale, "mnist", "distinct:2"))}

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return the mean likeness of two clients' layers on the same pictures."""
        values = [_layer_likeness(run) for run in results["local", ""]]
        return Measured(
            ("likeness",),
            {
                "features": {"likeness": [features for features, _ in values]},
                "classifier": {"likeness": [classifier for _, classifier in values]},
            },
            "linear CKA",
        )

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that features are alike, and more so than what classifiers make of them."""
        alike = found.rows["features"]["likeness"]
        return [
            beyond(
                "features of different clients are alike: CKA above 0.5",
                alike,
                0.5,
                added=True,
                confidence=found.confidence,
            ),
            above(found, "features", "classifier", "likeness"),
        ]

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return what differs."""
        told = (
            "The paper quotes the observation from other work, of local models in a federation; it"
            " measures nothing of it. Clients here train alone."
        )
        return [_SMOKE_NOTE] if scale == "smoke" else [told]


def linear_cka(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    r"""Return the centred kernel alignment of two representations [N, ·] of the same samples.

    .. math:: \lVert Y^\top X \rVert_F^2 / (\lVert X^\top X \rVert_F \lVert Y^\top Y \rVert_F)

    Examples
    --------
    >>> x = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    >>> round(linear_cka(x, 3.0 * x[:, ::-1] + 1.0), 12)
    1.0
    """
    one, other = one - one.mean(axis=0), other - other.mean(axis=0)
    scale = np.linalg.norm(one.T @ one) * np.linalg.norm(other.T @ other)
    return float(np.linalg.norm(other.T @ one) ** 2 / scale) if scale > 0 else 0.0


def _keep_input(into: list[torch.Tensor]) -> Callable[..., None]:
    """Return a hook that keeps what goes into a layer."""

    def hook(_: object, inputs: tuple[torch.Tensor, ...], __: object) -> None:
        into.append(inputs[0])

    return hook


def _layer_likeness(run: Result) -> tuple[float, float]:
    """Return the mean likeness of all pairs of clients: before the last layer, and after it."""
    from learners.runs.prepare import data_of

    data = data_of(run.config)
    pictures = torch.cat([torch.as_tensor(each.test.inputs)[:20] for each in data.clients])
    hidden, given = [], []
    for client in range(run.config.clients):
        network = run.model(client)
        heads = [part for part in network.modules() if isinstance(part, torch.nn.Linear)]
        seen: list[torch.Tensor] = []
        handle = heads[-1].register_forward_hook(_keep_input(seen))
        with torch.inference_mode():
            given.append(network(pictures).double().numpy())
        handle.remove()
        hidden.append(seen[0].double().numpy())
    pairs = [(i, j) for i in range(len(hidden)) for j in range(i)]
    return (
        float(np.mean([linear_cka(hidden[i], hidden[j]) for i, j in pairs])),
        float(np.mean([linear_cka(given[i], given[j]) for i, j in pairs])),
    )
