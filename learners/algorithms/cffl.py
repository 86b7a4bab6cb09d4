"""CFFL: clients form the coalitions whose synergies are worth most, and train in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch

from coalitions.errors import InvalidInputError
from coalitions.game import FloatMatrix
from coalitions.graph import DENSE_LIMIT, SynergyGraph
from coalitions.structure import CoalitionStructure
from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.algorithms._cffl_variants import Models, overlapping_round, settled_newcomers
from learners.client.tasks import fine_tune_pairs, gradient, train
from learners.devices import to_host
from learners.settings.options import option
from solvers import solve
from solvers.overlap.profitable import MOST_PLAYERS
from solvers.solver import SOLVERS

if TYPE_CHECKING:
    from torch import Tensor

    from learners.rows.parameters import Layout
    from learners.server.federation import Federation
    from learners.settings.config import RunConfig
    from learners.task import Message

GRADIENTS_AT_ONCE = 64
"""Pairs whose gradients the server holds at a time: all n² of them may not fit in memory."""


@ALGORITHMS.register("cffl")
@dataclass(frozen=True)
class CFFL(Algorithm):
    r"""Coalition formation for federated learning [Ota2022]_, Algorithms 1 to 3.

    Clients start from their coalition's model, train and upload :math:`w_i`. The server finds the
    synergy :math:`s_{ij}` of every pair, the coalition structure with the most synergy inside
    coalitions (Definition 3: :math:`V(CS) = \sum_{C \in CS} \sum_{i < j \in C} s_{ij}`), and each
    coalition's model, the plain mean :math:`\theta_k = \tfrac{1}{|C_k|} \sum_{i \in C_k} w_i`
    (Algorithm 1, line 10). In the first round everyone is in the grand coalition.

    With :math:`\bar w_{ij} = (w_i + w_j) / 2`, the synergy is

    - ``ica``, improvement in classification accuracy (Algorithm 2): with :math:`\bar w_i` the mean
      fine-tuned by i for an epoch,

      .. math:: e_{j \to i} = P(\bar w_i, D_i) - P(w_i, D_i), \qquad
                s_{ij} = (e_{i \to j} + e_{j \to i}) / 2;

    - ``cos``, similarity of gradients (Algorithm 3, which prints L for its gradient):

      .. math:: \nabla_i = \nabla L(\bar w_{ij}, D_i), \qquad
                s_{ij} = \frac{\langle \nabla_i, \nabla_j \rangle}
                              {\lVert \nabla_i \rVert \lVert \nabla_j \rVert},

      0 if a gradient is zero.

    Clients that are absent keep the model they have; coalitions form among those present.

    Parameters
    ----------
    synergy
        How synergy is measured: by what two models gain together (``ica``), or by the cosine of
        their gradients (``cos``).
    solver
        Who solves for the structure, see `solvers.available`; the paper's RP*(G)+pp is any of the
        integer-programming back-ends. Each round starts from the last round's structure.
    time_limit
        Seconds for each solve; then the best structure so far is taken.
    ica_on
        Held-out data of ``ica``: ``validation``, or ``test`` as in the paper, where the test data
        then have a say in training.
    gain
        What ``ica`` measures: ``accuracy`` as in the paper, or any other metric, an error negated;
        ``auto`` is accuracy where there is one, else what is usual with the targets.
    cos_on
        Data of ``cos``: ``train`` as in the paper, or ``validation``. Clients that fit their
        training data pull the mean of two models apart, whoever they are: their gradients at it
        point to either model. Held-out data were not fitted.
    cos_mode
        Whether gradients of ``cos`` are those of the network as it predicts (``evaluation``) or as
        it learns (``training``: with dropout). The paper does not say.
    ties
        Accuracies on few images come in steps, so several structures may be best. ``canonical``
        takes the one with the fewest joined pairs, whoever solves and wherever it starts; ``any``
        takes the one that is found first.
    overlap
        How many coalitions a client may be in, the paper's future work; with 2 or more of them, of
        up to 62 clients, `solvers.solve_overlapping` finds coalitions of which two clients share
        at most one. A client's model is then the mean of its coalitions' models, weighted by its
        synergy with each of them.
    """

    relevance_is: ClassVar[str] = "synergies"
    synergy: Literal["ica", "cos"] = option("ica", changes="relevance")
    solver: str = option("auto", names="solvers", needs={"overlap": 1}, changes="solver")
    time_limit: float | None = option(None, above=0, unset="no limit", changes="proof")
    ica_on: Literal["validation", "test"] = option(
        "validation", needs={"synergy": "ica"}, changes="relevance"
    )
    gain: str = option("auto", needs={"synergy": "ica"}, changes="relevance")
    cos_on: Literal["train", "validation"] = option(
        "train", needs={"synergy": "cos"}, changes="relevance"
    )
    cos_mode: Literal["evaluation", "training"] = option(
        "evaluation", needs={"synergy": "cos"}, changes="relevance"
    )
    ties: Literal["canonical", "any"] = option("canonical", needs={"overlap": 1}, changes="models")
    overlap: int = option(1, least=1, changes="models")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.solver != "auto":
            SOLVERS[self.solver].require(self.solver)  # said before any training, not after

    @property
    def traits(self) -> Traits:
        """What the method needs: the task and the metric of its synergy, maybe validation data."""
        held_out = self.ica_on if self.synergy == "ica" else self.cos_on
        return Traits(
            asks=("train", "gradient" if self.synergy == "cos" else "fine-tune-pairs"),
            measures=(self.gain,),
            validates=held_out == "validation",
        )

    def check(self, config: RunConfig, layout: Layout) -> None:
        """Refuse overlapping coalitions of more clients than can be solved for."""
        if self.overlap > 1 and config.new_clients:
            raise InvalidInputError(
                "cffl has nothing for new clients if coalitions overlap; choose overlap 1"
            )
        if self.overlap > 1 and config.clients > MOST_PLAYERS:
            raise InvalidInputError(
                f"overlap of cffl takes at most {MOST_PLAYERS} clients; there are {config.clients}"
            )

    def start(self, federation: Federation) -> State:
        """Return the grand coalition with the first model."""
        return {"labels": [0] * len(federation.clients), "models": federation.initial_model[None]}

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Train in coalitions, then form new ones and average inside them."""
        labels, models = state["labels"], state["models"]
        replies = federation.ask(
            train, {c: {"model": models[labels[c]], "keep": True} for c in federation.present}
        )
        uploads = {c: reply["model"] for c, reply in replies.items()}
        present = list(uploads)
        synergies = self.synergies(federation, uploads)
        relevance = np.zeros((len(labels), len(labels)))
        relevance[np.ix_(present, present)] = synergies
        federation.record(relevance=relevance)
        if self.overlap > 1:
            return overlapping_round(self, federation, state, uploads, synergies)
        solution = solve(
            SynergyGraph(synergies),
            self.solver,
            time_limit=self.time_limit,
            warm_start=CoalitionStructure.from_labels([labels[c] for c in present]),
            seed=federation.config.seed,
            canonical=self.ties == "canonical" and len(present) <= DENSE_LIMIT,
        )
        # Who is absent keeps its last model: the old coalitions go on without those present.
        kinds = np.array(labels)
        kinds[present] = len(models) + solution.structure.labels
        structure = CoalitionStructure.from_labels(kinds)
        rows = [
            self.mean(federation, [uploads[c] for c in block])
            if block[0] in uploads
            else models[labels[block[0]]]
            for block in structure
        ]
        federation.record(
            structure=structure,
            structure_value=solution.value,
            structure_optimal=solution.optimal,
            structure_solver=solution.solver,
            solve_seconds=solution.seconds,
        )
        return {"labels": structure.labels.tolist(), "models": torch.stack(rows)}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Train the mean model, and join the best coalition by synergy, or by loss if in doubt.

        A newcomer's synergy with a coalition is the sum of those with its members, measured on
        both sides; alone it is 0. It then uses the mean of its own model and theirs.

        Accuracies on n held-out samples come in steps of 1/n, so with few samples ``ica`` cannot
        tell coalitions apart: one sample of the newcomer, right or wrong with every member, is
        :math:`|C| / 2n`. Of all that are within such a step of the best, it takes the one whose
        mean model has the lowest loss on the same samples. Of another metric than accuracy, that
        is for equal synergies only.
        """
        return settled_newcomers(self, federation, state, clients)

    def synergies_with(
        self, federation: Federation, members: Models, newcomer: int, own: Tensor
    ) -> dict[int, float]:
        """Return the synergy of a newcomer with each member: gains on both sides, or cosines."""
        rows = torch.stack(list(members.values()))
        if self.synergy == "ica":
            task, key, here, there = fine_tune_pairs, "gains", rows, own.expand_as(rows)
            how: dict[str, Any] = {"on": self.ica_on}
            how |= {} if self.gain == "auto" else {"metric": self.gain}
        else:
            task, key, here, there = gradient, "gradients", (rows + own) / 2, (rows + own) / 2
            how = {"on": self.cos_on, "mode": self.cos_mode}
        messages = {m: {"models": row[None], **how} for m, row in zip(members, there, strict=True)}
        messages[newcomer] = {"models": here, **how}
        replies = federation.ask(task, messages, measuring=True)
        if newcomer not in replies:
            return {}
        ours = dict(zip(members, replies[newcomer][key], strict=True))
        theirs = {m: replies[m][key][0] for m in members if m in replies}
        if self.synergy == "ica":
            return {m: (float(ours[m]) + float(theirs[m])) / 2 for m in theirs}
        return {m: cosine(ours[m], theirs[m]) for m in theirs}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return the coalition's model for everyone, and what everyone trained from the last.

        The paper does not say which of the two its tables test.
        """
        models, labels = state["models"], state["labels"]
        return {
            "coalition": {c: {"model": models[labels[c]]} for c in federation.clients},
            "trained": {c: {} for c in federation.clients},
        }

    def synergies(self, federation: Federation, uploads: Models) -> FloatMatrix:
        """Return the synergies of all pairs that uploaded, in their order: [m, m]."""
        if self.synergy == "cos":
            return cosine_synergies(federation, uploads, on=self.cos_on, mode=self.cos_mode)
        return accuracy_synergies(federation, uploads, on=self.ica_on, metric=self.gain)

    def mean(self, federation: Federation, rows: list[Tensor]) -> Tensor:
        """Return the model of a coalition, of its members' models."""
        models = torch.stack(rows)
        return federation.combine(models, models.new_ones(len(models)))


def accuracy_synergies(
    federation: Federation,
    uploads: Models,
    *,
    on: Literal["validation", "test"],
    metric: str = "auto",
) -> FloatMatrix:
    """Return what pairs gain in accuracy, or another metric, by joining: Algorithm 2 (ICA)."""
    clients = list(uploads)
    peers = {i: [j for j in clients if j != i] for i in clients}
    if len(clients) == 1:
        return np.zeros((1, 1))
    named = {} if metric == "auto" else {"metric": metric}
    replies = federation.ask(
        fine_tune_pairs,
        {
            i: {"models": torch.stack([uploads[j] for j in peers[i]]), "on": on} | named
            for i in clients
        },
    )
    gains = np.zeros((len(clients), len(clients)))  # gains[i, j]: e of j → i
    place = {c: number for number, c in enumerate(clients)}
    for i, reply in replies.items():
        gains[place[i], [place[j] for j in peers[i]]] = reply["gains"]
    synergies: FloatMatrix = (gains + gains.T) / 2
    return synergies


def cosine_synergies(
    federation: Federation,
    uploads: Models,
    *,
    on: Literal["train", "validation"] = "train",
    mode: Literal["evaluation", "training"] = "evaluation",
) -> FloatMatrix:
    """Return the cosines of the pairs' gradients at their mean model: Algorithm 3 (COS)."""
    clients = list(uploads)
    place = {c: number for number, c in enumerate(clients)}
    synergies = np.zeros((len(clients), len(clients)))
    for pairs in _batches_of_pairs(clients):
        means = {(i, j): (uploads[i] + uploads[j]) / 2 for i, j in pairs}
        at = {c: [pair for pair in pairs if c in pair] for c in clients}
        replies = federation.ask(
            gradient,
            {
                c: {"models": torch.stack([means[p] for p in at[c]]), "on": on, "mode": mode}
                for c in clients
                if at[c]
            },
        )
        gradients = {
            (c, pair): row
            for c, reply in replies.items()
            for pair, row in zip(at[c], reply["gradients"], strict=True)
        }
        for i, j in pairs:
            # A client whose answer was refused has no synergy with anyone: nothing is known.
            if (i, (i, j)) in gradients and (j, (i, j)) in gradients:
                value = cosine(gradients[i, (i, j)], gradients[j, (i, j)])
                synergies[place[i], place[j]] = synergies[place[j], place[i]] = value
    return synergies


def cosine(one: Tensor, other: Tensor) -> float:
    r"""Return :math:`\langle a, b \rangle / (\lVert a \rVert \lVert b \rVert)`; 0 if one is zero.

    Examples
    --------
    >>> cosine(torch.tensor([3.0, 4.0]), torch.tensor([4.0, 3.0])), cosine(
    ...     torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0])
    ... )
    (0.96, 0.0)
    """
    # In double precision: small gradients squared leave float32's range.
    one, other = to_host(one).double(), to_host(other).double()
    scale = float(one.norm() * other.norm())
    return float(one @ other) / scale if scale > 0 else 0.0


def _batches_of_pairs(clients: list[int]) -> Iterator[list[tuple[int, int]]]:
    """Yield all pairs, some at a time, in an order that gives everyone work in each batch."""
    n = len(clients)
    places = sorted(itertools.combinations(range(n), 2), key=lambda pair: pair[1] - pair[0])
    size = max(GRADIENTS_AT_ONCE, n)
    for begin in range(0, len(places), size):
        yield [(clients[a], clients[b]) for a, b in places[begin : begin + size]]
