"""pFedSV: what is counted or computed without training: Figs. 8 to 11, and the bound on rounds."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from coalitions.errors import InvalidInputError
from coalitions.files.writing import atomic_write
from learners.algorithms.pfedsv import Order, PFedSV, chosen_downloads
from learners.data.ground_truth import label_overlap
from learners.data.partitions import shares_of
from learners.models import build_model
from learners.privacy.mechanism import Privacy
from learners.reproduction.claims import Claim, Measured, above, beyond, exact
from learners.reproduction.experiment import EXPERIMENTS, Experiment, Key, Results, Scale
from learners.rows.parameters import Cut, Layout
from learners.settings.seeding import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from learners.attacks.inversion import Attacked
    from learners.settings.config import RunConfig

# ----------------------------------------------------------------------------------------
# The traffic of a run, predicted from the size of its network and a trace of k.

Counts = NDArray[np.int64]

ABSENT = -1
"""Stands in a trace for a client that did not take part in a round."""


@dataclass(frozen=True)
class ModelSize:
    """Numbers of a model as it travels: parameters and batch norm's buffers.

    Attributes
    ----------
    features, classifier
        How many belong to the feature extractor, and to the classifier.
    """

    features: int
    classifier: int

    @classmethod
    def of(cls, layout: Layout, cut: Cut = "head") -> ModelSize:
        """Return the sizes of a network that is cut somewhere."""
        features, classifier = layout.parts(cut)
        return cls(len(features), len(classifier))

    @property
    def whole(self) -> int:
        """Size of the model."""
        return self.features + self.classifier

    @property
    def classifier_share(self) -> float:
        """Share of the classifier."""
        return self.classifier / self.whole


def predicted_traffic(
    algorithm: str, size: ModelSize, trace: Counts, *, shared_extractor: bool = False
) -> tuple[Counts, Counts]:
    r"""Return the parameters each client sends up and gets down in each round, [rounds, clients].

    Every client uploads its model. Down come, with k models of others in the trace,

    ==================  ==================================================
    fedavg, fedamp      one model
    fedfomo, pfedsv     k models
    pfedsv with C       one feature extractor and k classifiers (Fig. 5)
    ==================  ==================================================

    Parameters
    ----------
    algorithm
        ``fedavg``, ``fedamp``, ``fedfomo`` or ``pfedsv``.
    size
        Of the network.
    trace
        Models of others each client downloads in each round, [rounds, clients]; `ABSENT` for
        clients that do not take part.
    shared_extractor
        Whether pfedsv shares the extractor ("C").
    """
    k = np.maximum(trace, 0)
    if algorithm in ("fedavg", "fedamp"):
        down = np.full_like(k, size.whole)
    elif algorithm == "pfedsv" and shared_extractor:
        down = size.features + k * size.classifier
    elif algorithm in ("fedfomo", "pfedsv"):
        down = k * size.whole
    else:
        raise InvalidInputError(
            f"the traffic of {algorithm} cannot be predicted; that of fedavg, fedamp, fedfomo and"
            " pfedsv can"
        )
    there = trace != ABSENT
    return np.where(there, size.whole, 0), np.where(there, down, 0)


def trace_of(history: Sequence[Mapping[str, Any]], n_clients: int, k: int | None = None) -> Counts:
    """Return the trace of a run that happened, from the lines of its `metrics.jsonl`.

    Parameters
    ----------
    history
        One mapping per round.
    n_clients
        Number of clients.
    k
        Downloads in each round, for methods that always take as many as there are, up to k;
        None if the run recorded its `downloads`.
    """
    trace = np.full((len(history), n_clients), ABSENT, dtype=np.int64)
    for line, row in zip(history, trace, strict=True):
        present = line["participants"]
        if k is None:
            row[present] = np.asarray(line["downloads"])[present]
        else:
            row[present] = min(k, len(present) - 1)
    return trace


def ideal_trace(
    relevant: NDArray[np.bool_], rounds: int, method: PFedSV, *, seed: int = 0
) -> Counts:
    """Return the trace of pfedsv if its games told exactly who is relevant, [rounds, clients].

    A relevant client scores above zero, another below, from the first time it is tried.

    Parameters
    ----------
    relevant
        Whether j helps i, [n, n].
    rounds
        Number of rounds; everyone takes part in all.
    method
        Its `k`, `dynamic`, `order` and `explore` decide.
    seed
        Of what is random in the choice.
    """
    n = len(relevant)
    rng = np.random.default_rng(seed)
    scores, scored = np.zeros((n, n)), np.zeros((n, n), dtype=np.int64)
    trace = np.zeros((rounds, n), dtype=np.int64)
    for row in trace:
        for i in range(n):
            others = np.array([j for j in range(n) if j != i])
            taken = chosen_downloads(
                scores[i, others],
                scored[i, others],
                others,
                k=method.k,
                order="scan" if method.order == "auto" else method.order,
                dynamic=method.dynamic,
                explore=method.explore,
                rng=rng,
            )
            row[i] = len(taken)
            scored[i, taken] += 1
            scores[i, taken] = np.where(relevant[i, taken], 1.0, -1.0)
    return trace


# ----------------------------------------------------------------------------------------
# The experiments.

ROUNDS, CLIENTS = 20, 10

NOISE = Privacy("updates", 1.0, 1.0, 1e-5)
"""What hides the pictures of Fig. 11: σ and clip are 1."""

TRAFFIC: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "pFedSV": ("pfedsv", {"dynamic": False}),
    "pFedSV (D)": ("pfedsv", {}),
    "pFedSV (D+C)": ("pfedsv", {"shared_extractor": True}),
    "FedFomo": ("fedfomo", {"dynamic": False}),
    "FedAMP": ("fedamp", {}),
    "FedAvg": ("fedavg", {}),
}


class _Counted(Experiment):
    """Something that needs no run."""

    def runs(self, scale: Scale) -> Mapping[Key, Mapping[str, Any]]:
        """Return no run: it is counted."""
        return {}


class _Traffic(_Counted):
    network: ClassVar[str]
    n_classes: ClassVar[int] = 10
    cut: ClassVar[Cut] = "dense"
    share: ClassVar[float]

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return what ten clients send and get in twenty rounds, as multiples of FedAvg's."""
        size = self._size()
        one_model = 2 * ROUNDS * CLIENTS * size.whole
        rows: dict[str, dict[str, list[float]]] = {row: {"traffic": []} for row in TRAFFIC}
        for seed in seeds:
            relevant = _relevance(seed)
            for row, (algorithm, options) in TRAFFIC.items():
                trace = ideal_trace(relevant, ROUNDS, PFedSV(**options), seed=seed)
                up, down = predicted_traffic(
                    algorithm, size, trace, shared_extractor=options.get("shared_extractor", False)
                )
                rows[row]["traffic"].append(float(up.sum() + down.sum()) / one_model)
        return Measured(("traffic",), rows, "× FedAvg")

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that a shared extractor saves, and the classifier's share."""
        size = self._size()
        gap = abs(size.classifier_share - self.share)
        return [
            _more_traffic(found, "pFedSV (D)", "pFedSV (D+C)"),
            _more_traffic(found, "pFedSV (D+C)", "FedAMP"),
            exact(
                f"the classifier has {self.share:.2%} of the parameters, to a point (here"
                f" {size.classifier_share:.2%})",
                0.01 - gap,
            ),
        ]

    def _size(self) -> ModelSize:
        return _size(self.network, self.n_classes, self.cut)

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return how it is counted."""
        return [
            "Nothing is trained: counts follow from the network and from games that tell exactly"
            " who shares a label (ten clients, two labels each, twenty rounds).",
            "The classifier is all layers after the convolutions.",
        ]


def _more_traffic(found: Measured, row: str, other: str) -> Claim:
    """Return the claim that one row has more traffic than another, with every seed."""
    pairs = zip(found.rows[row]["traffic"], found.rows[other]["traffic"], strict=True)
    return exact(f"{row} is above {other} (traffic)", min(one - two for one, two in pairs))


@functools.cache
def _size(network: str, n_classes: int, cut: Cut) -> ModelSize:
    """Return how large a network is: only its shapes count, so its weights have no memory."""
    with torch.device("meta"):
        layout = Layout.of(build_model(network, shape=(3, 32, 32), n_classes=n_classes, seed=0))
        return ModelSize.of(layout, cut)


def _relevance(seed: int) -> Any:  # noqa: ANN401 (a matrix of truths)
    shares = shares_of(
        "distinct:2", np.full(10, 100), n_clients=CLIENTS, rng=generator(seed, "partition", "")
    )
    return label_overlap(shares)


@EXPERIMENTS.register("pfedsv-fig8")
class Fig8(_Traffic):
    """Traffic of LeNet-5."""

    network, share = "lenet-5", 0.4957

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that dynamic downloads save, too.

        Whole models are counted for that, so it is the same for every network: once is enough.
        """
        return [_more_traffic(found, "FedFomo", "pFedSV (D)"), *super().claims(found, results)]


@EXPERIMENTS.register("pfedsv-fig9")
class Fig9(_Traffic):
    """Traffic of ResNet-34."""

    network, share, n_classes = "resnet-34", 0.023, 1000


@EXPERIMENTS.register("pfedsv-fig10")
class Fig10(_Traffic):
    """Traffic of VGG-19."""

    network, share, n_classes = "vgg-19", 0.8974, 1000


@EXPERIMENTS.register("pfedsv-rounds")
class Bound(_Counted):
    """Rounds to find all relevant clients, and the paper's bound on them."""

    cases = ((20, 4, 5), (20, 2, 5), (50, 10, 5), (100, 19, 5))

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return the most rounds of many tries, by order of downloads."""
        tries = {"smoke": 5, "small": 100, "paper": 1000}[scale]
        rows: dict[str, dict[str, list[float]]] = {"bound": {}}
        for case in self.cases:
            column = "n = {}, m = {}, k = {}".format(*case)
            rows["bound"][column] = [float(bound(*case))] * len(seeds)
            orders: tuple[Order, ...] = ("scan", "mixed", "top-k")
            for order in orders:
                rows.setdefault(f"{order}, most of {tries}", {})[column] = [
                    float(max(rounds_to_find(*case, order, seed * tries + t) for t in range(tries)))
                    for seed in seeds
                ]
        return Measured(tuple(rows["bound"]), rows, "rounds")

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that no try exceeds the bound: with the order of the proof, and as printed."""
        told = []
        for row in found.rows:
            if row != "bound":
                slack = min(
                    found.rows["bound"][column][0] - max(found.rows[row][column]) + 1
                    for column in found.columns
                )
                order = row.partition(",")[0]
                text = f"all are found within the bound, order {order}"
                told.append(exact(text, slack, added=order != "top-k"))  # which is printed
        return told

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return what is assumed."""
        return [
            "Games tell exactly who is relevant; `top-k` is the order that the paper prints.",
            "A client that has not found all after 10 n rounds is counted with 10 n.",
        ]


def bound(n: int, m: int, k: int) -> int:
    """Return the paper's bound on the rounds: ⌈(n−m−1)/k⌉ + ⌈m/k⌉."""
    return -(-(n - m - 1) // k) + -(-m // k)


def rounds_to_find(n: int, m: int, k: int, order: Order, seed: int) -> int:
    """Return the rounds until a client has downloaded its m relevant ones of n."""
    rng = np.random.default_rng(seed)
    relevant = rng.permutation(n - 1)[:m]
    helps = np.zeros(n - 1, bool)
    helps[relevant] = True
    scores, scored = np.zeros(n - 1), np.zeros(n - 1, np.int64)
    for t in range(1, 10 * n):
        taken = chosen_downloads(
            scores, scored, np.arange(n - 1), k=k, order=order, dynamic=True, explore=0.0, rng=rng
        )
        scores[taken] = 0.5 * scores[taken] + np.where(helps[taken], 0.05, -0.05)
        scored[taken] += 1
        if scored[relevant].all():
            return t
    return 10 * n


@EXPERIMENTS.register("pfedsv-fig11")
class Fig11(_Counted):
    """Pictures recovered from an upload, without noise and with it."""

    _shown: int

    seeds: ClassVar[Mapping[Scale, int]] = {"smoke": 1, "small": 3, "paper": 5}

    def beside(self, scale: Scale, seeds: Sequence[int]) -> str:
        """Return how many pictures there are to recover."""
        files = [file for seed in seeds for file in self._files(scale, seed)]
        there = sum(file.is_file() for file in files)
        told = f"{len(files)} picture{'s' * (len(files) != 1)} to recover"
        return told + (f", {there} of them are there" if there else "")

    def measured(self, results: Results, scale: Scale, seeds: Sequence[int]) -> Measured:
        """Return how like the recovered pictures are to the true ones."""
        self._shown = seeds[0]
        self._recover(scale, seeds)
        plain, noised = [], []
        for seed in seeds:
            found = self._pictures(scale, seed)
            plain.append(float(np.mean([each.likeness[0] for each in found])))
            noised.append(float(np.mean([each.noised_likeness[0] for each in found])))
        return Measured(("PSNR",), {"original": {"PSNR": plain}, "σ = 1": {"PSNR": noised}}, "dB")

    def claims(self, found: Measured, results: Results) -> Sequence[Claim]:
        """Return that noise hides the pictures; the paper names no level, so these are added."""
        return [
            above(found, "original", "σ = 1", "PSNR"),
            beyond(
                "with noise nothing is seen: PSNR below 12 dB",
                [-each for each in found.rows["σ = 1"]["PSNR"]],
                -12.0,
                added=True,
                confidence=found.confidence,
            ),
            beyond(
                "without noise pictures are seen: PSNR above 20 dB",
                found.rows["original"]["PSNR"],
                20.0,
                added=True,
                confidence=found.confidence,
            ),
        ]

    def figures(self, found: Measured, results: Results, scale: Scale) -> Mapping[str, Figure]:
        """Return the pictures of the first seed: as they are, recovered, recovered from noise."""
        from learners.attacks.inversion import attacked_pictures

        return {"figure": attacked_pictures(self._pictures(scale, self._shown), NOISE.noise)}

    def _recover(self, scale: Scale, seeds: Sequence[int]) -> None:
        """Recover all pictures that are not there yet, and keep each."""
        from learners.attacks.inversion import inversion_of

        missing = [
            (seed, number, file)
            for seed in seeds
            for number, file in enumerate(self._files(scale, seed))
            if not file.is_file()
        ]
        for done, (seed, number, file) in enumerate(missing, start=1):
            attack = inversion_of(
                self._config(scale, seed), pictures=1, first=number,
                steps=20 if scale == "smoke" else None, privacy=NOISE, real_round=False,
            )  # fmt: skip
            one = attack.pictures[0]
            three = torch.stack([one.original, one.recovered, one.noised])
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(file) as opened:
                np.save(opened, three.numpy())
            if self.on_part is not None:
                self.on_part(done, len(missing))

    def _pictures(self, scale: Scale, seed: int) -> list[Attacked]:
        """Return the pictures of a seed, read from their files."""
        from learners.attacks.inversion import Attacked

        return [
            Attacked(*torch.from_numpy(np.load(file, allow_pickle=False)))
            for file in self._files(scale, seed)
        ]

    def _files(self, scale: Scale, seed: int) -> list[Path]:
        """Return where the pictures of a seed are kept."""
        from learners.runs.kept_runs import settings_digest
        from learners.settings.config import digest_of_all_settings

        assert self.folder is not None
        config = self._config(scale, seed)
        kept = self.folder / "pictures" / settings_digest(config)
        older = self.folder / "pictures" / digest_of_all_settings(config)
        if older.is_dir() and not kept.is_dir():
            kept = older
        n_pictures = {"smoke": 1, "small": 4, "paper": 10}[scale]
        return [kept / f"seed{seed}-{number}.npy" for number in range(n_pictures)]

    def _config(self, scale: Scale, seed: int) -> RunConfig:
        from learners.settings.config import RunConfig

        return RunConfig(
            dataset="digits" if scale == "smoke" else "cifar10",
            data_dir=None if self.data_dir is None else str(self.data_dir),
            model="mlp" if scale == "smoke" else "lenet-dlg",
            clients=1, partition="iid", train_size=20, lr=0.1, local_epochs=1, seed=seed,
        )  # fmt: skip

    def notes(self, scale: Scale) -> Sequence[str]:
        """Return what differs."""
        return ["One picture, one step of SGD, updates clipped to 1. The paper shows pictures."]
