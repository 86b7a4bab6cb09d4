"""pFedSV: every client plays a game with the models of others, and keeps what helps it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch

import coalitions
from coalitions.errors import InvalidInputError
from coalitions.game import BoolMatrix, FloatVector, Game, IntVector
from coalitions.games.function import FunctionGame
from coalitions.values.estimator import Estimator
from coalitions.values.estimators.permutation import Permutation
from learners.algorithm import ALGORITHMS, Algorithm, State
from learners.client.model_games import ModelGame
from learners.client.tasks import deploy, describe, train
from learners.data.ground_truth import label_overlap
from learners.devices import to_host
from learners.privacy.mechanism import as_published
from learners.reply_schema import Asked, Numbers
from learners.rows.parameters import Cut, Layout, as_weights
from learners.settings.options import option
from learners.task import Message, Reveals, task

if TYPE_CHECKING:
    from torch import Tensor

    from learners.client.client import Client
    from learners.server.federation import Federation
    from learners.settings.config import RunConfig

EXACT_MODELS = 7
"""Up to here all coalitions are fewer than the evaluations of 3|S| permutations."""

FLOOR = 1e-6
"""Least distance in Eq. (6), relative to the model's norm or 1, whichever is larger."""

Order = Literal["scan", "mixed", "top-k"]
Keeps = Literal["positive", "non-negative"]
Collaboration = Literal["multiwise", "pairwise", "similarity", "cosine"]
SelfDistance = Literal["nearest", "mean", "exclude", "printed", "last"]
Players = Literal["all", "others"]


@ALGORITHMS.register("pfedsv")
@dataclass(frozen=True)
class PFedSV(Algorithm):
    r"""Personalised federated learning by Shapley values [Wu2024]_, Algorithms 1 and 2.

    In round t client i trains :math:`\theta_i`, uploads it and downloads some models of others,
    without names. With its own they are the players S of a game on its validation data,

    .. math:: v(X) = \mathcal{A}\Bigl(\tfrac{1}{|X|} \sum_{j \in X} \theta_j,\;
              \mathcal{D}_{V_i}\Bigr), \qquad v(\emptyset) = 0, \tag{4}

    whose Shapley values :math:`\varphi_j` (Eqs. 2 and 3) do two things: the server updates the
    relevance it chooses the next downloads by, and the client combines the models.

    .. math:: \phi^i_j &\leftarrow \alpha \phi^i_j + (1 - \alpha) \varphi_j, \quad j \in S \tag{5}

        w_j &= \max(\varphi_j, 0) / \lVert \theta_i - \theta_j \rVert \tag{6}

        \theta_i &\leftarrow \sum_j w_j \theta_j \Big/ \sum_j w_j \tag{7}

    The relevance stays with the server, which alone knows who is behind a model; a client
    answers with one Shapley value per slot, and slots are drawn anew in each round.

    Parameters
    ----------
    k
        Models a client downloads, in each round or, if `dynamic`, until it has tried everyone.
    dynamic
        "D": once a client has scored everyone present, it downloads those with a positive score,
        however many that are; otherwise always the `k` best.
    order
        ``scan`` takes clients never scored first, then the best scores; ``top-k`` goes by score
        alone, as printed in the paper (never scored counts as 0), so that early finds block
        their slots. ``mixed`` takes all with a positive score first and gives what is left of the
        `k` slots, one at least, to clients never scored: where few take part in a round, the
        known good ones are then used from the start, and their number decides early. ``auto`` is
        ``scan`` if everyone takes part in every round, else ``mixed``.
    keep_scores
        Which scores `dynamic` keeps: ``positive``, or ``non-negative`` as the paper's first version
        writes it.
    explore
        Probability with which a client that `dynamic` rejects is downloaded all the same.
    alpha
        Weight of the past when scores are updated (α, Eq. (5)).
    shared_extractor
        "C": the server averages the feature layers of all into one extractor, and only
        classifiers are downloaded, valued and combined (Fig. 5).
    classifier
        Where the classifier begins: at the last linear layer (``head``) or after the last
        convolution (``dense``).
    utility
        What a coalition of models is worth: ``accuracy``; ``loss``: v(X) = ln(classes) − loss; or
        any other metric of a run, as the gain above guessing what is usual, an error negated.
        ``auto`` is accuracy where there is one, else what is usual with the targets.
    method
        How to find Shapley values: ``auto`` is exact up to 7 models and Algorithm 2 above,
        ``permutation`` is always Algorithm 2; or any other of `coalitions.shapley`.
    permutations
        Orders that Algorithm 2 samples (R in the paper), for each model of the game.
    self_distance
        The paper's Eq. (6) divides by zero for a client's own model. Its distance is that of the
        ``nearest`` other model, or their ``mean``; or the own model has no weight (``exclude``).
        ``printed`` takes the equation at its word, with a small number for zero: nearly all of the
        weight is then the own model's, if its value is positive. ``last`` is the distance to the
        model that the client began the round with.
    players
        ``all`` models play, the own one too (Eq. (4)). Or ``others``: the own model is in every
        coalition, so that what another is worth is what it adds to it,
        :math:`X \mapsto v(X \cup \{i\}) - v(\{i\})`; the own value is then :math:`v(\{i\})`. It is
        as if the own model always came first, and the values still add up to :math:`v(S)`.
    collaboration
        ``multiwise``: Shapley values; ``pairwise``: each model is compared on its own with the
        model the client began the round with, :math:`\varphi_j = v(\{j\}) - v(\text{before})`, the
        numerator of FedFomo's weights (its denominator is another distance). ``similarity`` and
        ``cosine`` are the paper's Fig. 4: models are compared one to one, without data, and
        weighted in proportion, :math:`\varphi_j = w_j = 1 / \lVert \theta_i - \theta_j \rVert` or
        their cosine.
    noise_own
        Whether a client that noises its upload goes on with the noised model, too, as the paper
        does; otherwise what it keeps is clean.
    told
        Whether everyone is told in advance who shares a label with it, and downloads those
        (Fig. 4): then only the weights are left to the method.
    """

    relevance_is: ClassVar[str] = "Shapley values"
    k: int = option(5, least=0, needs={"told": False}, changes="traffic")
    dynamic: bool = option(True, needs={"told": False}, changes="traffic")
    order: Literal["auto", "scan", "mixed", "top-k"] = option(
        "auto", needs={"told": False}, changes="relevance"
    )
    keep_scores: Keeps = option(
        "positive", needs={"told": False, "dynamic": True}, changes="traffic"
    )
    explore: float = option(
        0.0, least=0, most=1, needs={"told": False, "dynamic": True}, changes="traffic"
    )
    alpha: float = option(0.5, least=0, most=1, changes="relevance")
    shared_extractor: bool = option(False, changes="traffic")
    classifier: Cut = option("head", needs={"shared_extractor": True}, changes="traffic")
    utility: str = option(
        "auto", needs={"collaboration": ("multiwise", "pairwise")}, changes="relevance"
    )
    method: str = option(
        "auto", names="estimators", needs={"collaboration": "multiwise"}, changes="relevance"
    )
    permutations: int = option(
        3,
        least=1,
        needs={"method": ("auto", "permutation"), "collaboration": "multiwise"},
        changes="relevance",
    )
    self_distance: SelfDistance = option("nearest", changes="models")
    players: Players = option("all", needs={"collaboration": "multiwise"}, changes="relevance")
    collaboration: Collaboration = option("multiwise", changes="relevance")
    noise_own: bool = option(False, changes="models")
    told: bool = option(False, changes="traffic")

    @property
    def measures(self) -> tuple[str, ...]:
        """The metric of the game."""
        return () if self.utility == "loss" else (self.utility,)

    @property
    def averages(self) -> bool:
        """Only the shared extractor is averaged; all else clients combine themselves."""
        return self.shared_extractor

    @property
    def validates(self) -> bool:
        """Whether clients need validation data: the game is on them."""
        return True

    @property
    def asks(self) -> tuple[str, ...]:
        """Names of the tasks the method asks its clients for."""
        steps = ("train", "pfedsv-collaborate")
        return ("describe", *steps) if self.told else steps

    def most_traffic(
        self, layout: Layout, n_present: int, n_classes: int
    ) -> tuple[int, int] | None:
        """Return a download of everyone present, unless always as many are downloaded."""
        if not self.dynamic and not self.told:
            return None
        others = n_present - 1
        if not self.shared_extractor:
            return layout.size, others * layout.size
        features, classifier = map(len, layout.parts(self.classifier))
        return layout.size, features + others * classifier

    def check(self, config: RunConfig, layout: Layout) -> None:
        """Refuse to noise what is kept where nothing is noised, and to share what is no part."""
        if self.shared_extractor:
            layout.parts(self.classifier)
        if self.self_distance == "last" and self.collaboration in ("similarity", "cosine"):
            raise InvalidInputError(
                f"self_distance last of pfedsv goes with Shapley values or pairs; collaboration is"
                f" {self.collaboration}"
            )
        noised = config.dp == "updates" and (config.noise or config.epsilon is not None)
        if self.noise_own and not noised:
            raise InvalidInputError(
                "noise_own of pfedsv has no effect here: only --dp updates with noise or epsilon"
                " puts noise into models"
            )

    def privacy_objection(self, dp: Literal["updates", "records"]) -> str | None:
        """Object to pairwise values in update mode: they are made with models nobody was sent."""
        if dp == "updates" and self.collaboration == "pairwise":
            return (
                "pfedsv cannot be private with --dp updates and collaboration=pairwise: its values"
                " compare with a model that never got noise, so a stated epsilon would be false"
            )
        return None

    def start(self, federation: Federation) -> State:
        """Return relevance zero, nobody scored."""
        n = len(federation.clients)
        state = {"relevance": np.zeros((n, n)), "scored": np.zeros((n, n), np.int64)}
        if self.told:
            about = federation.ask(describe, {c: {} for c in federation.clients}, measuring=True)
            nothing = np.zeros_like(next(iter(about.values()))["labels"])
            counts = np.stack(
                [about[c]["labels"] if c in about else nothing for c in federation.clients]
            )
            state["told"] = label_overlap(counts).astype(np.int64)
        return state

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Have everyone train, value what others trained, and combine it."""
        uploads = federation.ask(train, {c: {} for c in federation.present})
        present = np.array(list(uploads))
        rng = federation.rng("downloads")
        everyone = federation.config.participants == len(federation.clients)
        order = ("scan" if everyone else "mixed") if self.order == "auto" else self.order
        slots = {
            i: rng.permutation(self._choice(state, i, present[present != i], order, rng))
            for i in uploads
        }
        values = federation.ask(collaborate, self._messages(federation, uploads, slots))
        relevance, scored = state["relevance"].copy(), state["scored"].copy()
        self._learn({"relevance": relevance, "scored": scored}, slots, values)
        federation.record(
            relevance=relevance,
            downloads=[len(slots[c]) if c in slots else 0 for c in federation.clients],
            evaluations=sum(reply["evaluations"] for reply in values.values()),
        )
        return {**state, "relevance": relevance, "scored": scored}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Find neighbours among the members' models from scratch: value all, keep the best.

        A newcomer begins where the members began. In each step it trains, downloads `k` of the
        models that members trained last and that it never scored, values and combines them; when
        it has tried all, it does so once more with those that are good for it.
        """
        uploads = self._stored(federation)
        members = np.array(list(uploads))
        n = len(federation.clients) + len(federation.newcomers)
        found: dict[str, Any] = {
            "relevance": np.zeros((n, n)),
            "scored": np.zeros((n, n), np.int64),
        }
        if self.told:
            labels = {c: told["labels"] for c, told in federation.registered.items()}
            nothing = np.zeros_like(next(iter(labels.values())))
            counts = np.stack([labels.get(c, nothing) for c in range(n)])
            found["told"] = label_overlap(counts).astype(np.int64)
        rng = federation.rng("newcomers")
        order: Order = "top-k" if self.order == "top-k" else "scan"
        steps = 1 if self.told else 1 + math.ceil(len(members) / max(self.k, 1))
        for _ in range(steps):
            clients = list(
                federation.ask(train, {c: {"send": False} for c in clients}, measuring=True)
            )
            slots = {
                c: rng.permutation(self._choice(found, c, members, order, rng)) for c in clients
            }
            messages = self._messages(federation, uploads, slots)
            values = federation.ask(collaborate, messages, measuring=True)
            self._learn(found, slots, values)
            clients = list(values)
            federation.round += 1  # another order of the data
        return {c: {} for c in clients}

    def _stored(self, federation: Federation) -> dict[int, Message]:
        """Return what members trained last, as they would upload it."""
        asked = {c: {"trained": True} for c in federation.clients}
        told = federation.registered
        return {
            c: {"model": reply["model"], "samples": told[c]["samples"]}
            for c, reply in federation.ask(deploy, asked, measuring=True).items()
            if c in told
        }

    def _learn(
        self,
        found: Mapping[str, Any],
        slots: Mapping[int, IntVector],
        values: Mapping[int, Message],
    ) -> None:
        """Enter the values of games into relevance and counts."""
        relevance, scored = found["relevance"], found["scored"]
        for i, reply in values.items():
            players = np.array([i, *slots[i]])
            relevance[i] = updated_relevance(relevance[i], players, reply["values"], self.alpha)
            scored[i, players] += 1

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return nothing for anyone: clients have their models.

        ``personal`` is the combined model, which the paper reports; ``trained`` the one before
        it was combined in this round: what was combined in the round before, after local epochs.
        """
        return {
            "personal": {c: {} for c in federation.clients},
            "trained": {c: {"trained": True} for c in federation.clients},
        }

    def model(self, client: Client, message: Message) -> Tensor:
        """Return the combined model, or the one that was trained before it."""
        if not message.get("trained"):
            return client.own_model
        trained: Tensor = client.memory.get("trained", client.own_model)
        return trained

    def _choice(
        self, state: State, i: int, others: IntVector, order: Order, rng: np.random.Generator
    ) -> IntVector:
        if self.told:
            told: IntVector = others[state["told"][i, others] > 0]
            return told
        return chosen_downloads(
            state["relevance"][i, others],
            state["scored"][i, others],
            others,
            k=self.k,
            order=order,
            dynamic=self.dynamic,
            keep_scores=self.keep_scores,
            explore=self.explore,
            rng=rng,
        )

    def _messages(
        self, federation: Federation, uploads: dict[int, Message], slots: dict[int, IntVector]
    ) -> dict[int, Message]:
        """Return every client's downloads: whole models, or one extractor and classifiers."""
        numbers = {c: number for number, c in enumerate(uploads)}
        models = torch.stack([reply["model"] for reply in uploads.values()])
        rows = {i: [numbers[j] for j in slots[i]] for i in slots}
        if not self.shared_extractor:
            return {i: {"models": models[rows[i]]} for i in slots}
        features, classifier = federation.layout.parts(self.classifier, models.device)
        sizes = models.new_tensor([float(reply["samples"]) for reply in uploads.values()])
        extractor = federation.combine(models[:, features], sizes)
        classifiers = models[:, classifier]
        return {i: {"extractor": extractor, "classifiers": classifiers[rows[i]]} for i in slots}


def _players(asked: Asked) -> tuple[int]:
    return (1 + asked.rows("classifiers" if "extractor" in asked.message else "models"),)


@task(
    "pfedsv-collaborate",
    values=(Reveals.HELD_OUT, Numbers(_players)),
    evaluations=Reveals.SIZE,
)
def collaborate(client: Client, message: Message) -> Message:
    """Value the models that were received with one's own, and combine them (Eqs. 4, 6, 7).

    Parameters
    ----------
    client
        The client; its own model has just been trained.
    message
        `models` [m, P]; or `extractor` and `classifiers` [m, ·], if the extractor is shared.
        The reply has one value for the own model, then one for each received.
    """
    method = client.algorithm
    assert isinstance(method, PFedSV)
    layout, trained = client.workspace.layout, client.own_model
    if method.noise_own:
        trained = as_published(client, "model", trained)
    if "extractor" in message:
        features, classifier = layout.parts(method.classifier, trained.device)
        models = trained.repeat(len(message["classifiers"]) + 1, 1)
        models[:, features] = message["extractor"]
        models[1:, classifier] = message["classifiers"]
    else:
        models = torch.cat([trained[None], message["models"]])
    compared = _compared_parts(client, method, models)
    values, evaluations = _valued(client, method, models, compared)
    weights = _weights(client, method, values, compared)
    combined = as_weights(weights, models) @ models  # Eq. (7)
    client.memory |= {"trained": trained, "model": combined}
    if method.collaboration == "pairwise" or method.self_distance == "last":
        client.memory["before"] = combined  # what the next round's training begins with
    return _told(client, method, models, values, evaluations)


def chosen_downloads(
    scores: FloatVector,
    scored: IntVector,
    candidates: IntVector,
    *,
    k: int,
    order: Order,
    dynamic: bool,
    explore: float,
    rng: np.random.Generator,
    keep_scores: Keeps = "positive",
) -> IntVector:
    """Return which candidates a client downloads: the dynamic top-k mechanism.

    Parameters
    ----------
    scores
        Relevance of the candidates, [m].
    scored
        How often each was valued, [m]; a score of 0 does not mean never.
    candidates
        Their numbers, [m]; those present, without the client itself.
    k, order, dynamic, explore, keep_scores
        See `PFedSV`.
    rng
        Breaks ties, and explores.
    """
    new = scored == 0
    good = ~new & ((scores > 0) if keep_scores == "positive" else (scores >= 0))
    known = np.where(new, 0.0, -scores)
    shuffled = rng.random(len(candidates))
    # The last key is the first to sort by. Between equal scores, who was never tried comes first.
    keys: dict[Order, Sequence[FloatVector]] = {
        "scan": (shuffled, known, ~new),
        "mixed": (shuffled, known, ~new, ~good),
        "top-k": (shuffled, ~new, -scores),
    }
    ranking = np.lexsort(keys[order])
    if dynamic and order == "mixed":
        k = int(good.sum() + min(new.sum(), max(1, k - good.sum())))
    elif dynamic and not new.any():
        k = int(good.sum())
    tried_again = np.zeros(len(candidates), bool)
    if dynamic and explore:
        tried_again = ~new & ~good & (rng.random(len(candidates)) < explore)
    taken = np.zeros(len(candidates), bool)
    taken[ranking[:k]] = True
    return candidates[ranking[(taken | tried_again)[ranking]]]


def updated_relevance(
    relevance: FloatVector, players: IntVector, values: FloatVector, alpha: float
) -> FloatVector:
    r"""Return a client's relevance vector after a game, Eq. (5).

    .. math:: \phi_j \leftarrow \alpha \phi_j + (1 - \alpha) \varphi_j \quad \text{for } j \in S

    Examples
    --------
    >>> updated_relevance(np.array([0.2, 0.4, 0.6]), np.array([0, 2]), np.array([0.4, 0.0]), 0.5)
    array([0.3, 0.4, 0.3])
    """
    relevance = relevance.copy()
    relevance[players] = alpha * relevance[players] + (1 - alpha) * values
    return relevance


def collaboration_weights(
    values: FloatVector, distances: FloatVector, *, floor: float, self_distance: SelfDistance
) -> FloatVector:
    r"""Return the normalised weights of the models of a game, the client's own first: Eq. (6).

    .. math:: w_j = \max(\varphi_j, 0) / \lVert \theta_i - \theta_j \rVert

    If none is positive, the client keeps its own model: weight 1.

    Parameters
    ----------
    values
        :math:`\varphi_j`, [m].
    distances
        :math:`\lVert \theta_i - \theta_j \rVert`, [m]; the first is that to itself, or to its last
        model.
    floor
        Least distance.
    self_distance
        What stands for the first distance, see `PFedSV`.

    Examples
    --------
    >>> collaboration_weights(
    ...     np.array([0.5, 0.25, -0.1]), np.array([0.0, 2.0, 1.0]), floor=1e-6,
    ...     self_distance="nearest",
    ... )
    array([0.8, 0.2, 0. ])
    """
    alone = np.zeros(len(values))
    alone[0] = 1.0
    if len(values) == 1:
        return alone
    weights = np.maximum(values, 0.0) / _lifted(distances, floor, self_distance)
    if self_distance == "exclude":
        weights[0] = 0.0
    total = weights.sum()
    return weights / total if total > 0 else alone


def _lifted(distances: FloatVector, floor: float, self_distance: SelfDistance) -> FloatVector:
    """Return the distances to divide by: none is zero, and the first stands for the own model."""
    own, others = distances[0], distances[1:]
    if self_distance not in ("printed", "last"):
        own = others.mean() if self_distance == "mean" else others.min()
    lifted: FloatVector = np.maximum([own, *others], floor)
    return lifted


def _weights(client: Client, method: PFedSV, values: FloatVector, compared: Tensor) -> FloatVector:
    """Return the weights of the models, the client's own first."""
    if method.collaboration not in ("similarity", "cosine"):
        distances, floor = _distances(compared)
        if method.self_distance == "last":
            last = _compared_parts(client, method, _begun_with(client)[None])
            distances[0] = _distances(torch.cat([compared[:1], last]))[0][1]
        return collaboration_weights(
            values, distances, floor=floor, self_distance=method.self_distance
        )
    weights = np.maximum(values, 0.0)
    if method.self_distance == "exclude" and len(weights) > 1:
        weights[0] = 0.0
    if not weights.any():
        weights[0] = 1.0
    shares: FloatVector = weights / weights.sum()
    return shares


def _distances(compared: Tensor) -> tuple[FloatVector, float]:
    """Return how far each model is from the first, and what counts as no distance at all."""
    distances = to_host(torch.linalg.vector_norm(compared - compared[0], dim=1)).double().numpy()
    return distances, FLOOR * max(1.0, float(to_host(compared[0].norm())))


def _told(
    client: Client, method: PFedSV, models: Tensor, values: FloatVector, evaluations: int
) -> Message:
    """Return the values for the server: where uploads are noised, those with one's own upload.

    The clean model must not speak through them; for the combination at home it has spoken.
    """
    own = models[0]
    known = as_published(client, "model", own)
    if known is not own and not method.noise_own:
        known = known.clone()
        if method.shared_extractor:
            features, _ = client.workspace.layout.parts(method.classifier, own.device)
            known[features] = own[features]  # which is the extractor that was received
        # Nor through how early a truncating estimator stopped: the game at home is not counted.
        models = torch.cat([known[None], models[1:]])
        compared = _compared_parts(client, method, models)
        values, evaluations = _valued(client, method, models, compared)
    return {"values": values, "evaluations": evaluations}


def _valued(
    client: Client, method: PFedSV, models: Tensor, compared: Tensor
) -> tuple[FloatVector, int]:
    """Return the value of each model, the client's own first, and the number of evaluations."""
    if method.collaboration in ("similarity", "cosine"):
        return similarities(compared, method.collaboration, method.self_distance), 0
    if method.collaboration == "pairwise":
        return _compared(client, method, models)
    game: Game = _game(client, method, models)
    own = np.zeros(0)
    if method.players == "others":
        own = np.asarray(game(np.eye(1, len(models), dtype=bool)))  # v({i})
        if len(models) == 1:
            return own, 1
        game = _with_own(game, float(own[0]))
    estimate = coalitions.shapley(
        game,
        _estimator(method, game.n_players),
        seed=client.stream("shapley").initial_seed() % 2**32,
        interruptible=False,  # Ctrl-C ends the run
    )
    return np.concatenate([own, estimate.values]), int(estimate.evaluations) + len(own)


def _with_own(game: Game, alone: float) -> Game:
    """Return the game of the others, X ↦ v(X ∪ {i}) − v({i}); the own model is the first player."""

    def added(coalitions: BoolMatrix) -> FloatVector:
        own = np.ones((len(coalitions), 1), dtype=bool)
        worth: FloatVector = game(np.hstack([own, coalitions])) - alone
        return worth

    return FunctionGame(added, game.n_players - 1)


def similarities(models: Tensor, kind: Collaboration, self_distance: SelfDistance) -> FloatVector:
    r"""Return how much each model [m, P] is like the first, without looking at data (Fig. 4).

    .. math:: 1 / \lVert \theta_i - \theta_j \rVert \quad \text{or} \quad
              \langle \theta_i, \theta_j \rangle
              / (\lVert \theta_i \rVert \lVert \theta_j \rVert)

    Examples
    --------
    >>> rows = torch.tensor([[3.0, 4.0], [3.0, 2.0], [8.0, -6.0]])
    >>> similarities(rows, "similarity", "nearest").round(3), similarities(
    ...     rows, "cosine", "nearest"
    ... ).round(3)
    (array([0.5  , 0.5  , 0.089]), array([1.   , 0.943, 0.   ]))
    """
    if kind == "cosine":
        rows = to_host(models).double()
        angles: FloatVector = torch.cosine_similarity(rows[:1], rows).numpy()
        return angles
    distances, floor = _distances(models)
    if len(distances) == 1:
        return np.ones(1)
    nearness: FloatVector = 1.0 / _lifted(distances, floor, self_distance)
    return nearness


def _compared_parts(client: Client, method: PFedSV, models: Tensor) -> Tensor:
    """Return the part of the models whose distances count: what was downloaded of them."""
    layout = client.workspace.layout
    if method.shared_extractor:
        return models[:, layout.parts(method.classifier, models.device)[1]]
    return layout.parameters(models)


def _estimator(method: PFedSV, n_models: int) -> str | Estimator:
    name = method.method
    if name == "auto":
        name = "exact" if n_models <= EXACT_MODELS else "permutation"
    if name == "permutation" and n_models > 1:  # a lone model needs no sampling
        return Permutation(permutations=max(2, method.permutations * n_models))  # Algorithm 2
    return name


def _compared(client: Client, method: PFedSV, models: Tensor) -> tuple[FloatVector, int]:
    """Return what each model is worth by itself, above the one the client began the round with."""
    game = _game(client, method, torch.cat([_begun_with(client)[None], models]))
    alone = game(np.eye(game.n_players, dtype=bool))
    return alone[1:] - alone[0], len(alone)


def _begun_with(client: Client) -> Tensor:
    """Return the model that the client began the round with."""
    before: Tensor = client.memory.get("before", client.site.initial)
    return before


def _game(client: Client, method: PFedSV, models: Tensor) -> ModelGame:
    """Return the game of the models on the client's validation data, Eq. (4)."""
    return ModelGame(
        client.workspace,
        models,
        client.data.validation,
        client=client,
        n_classes=client.site.n_classes,
        metric=method.utility,
        known=client.data.train.targets,
    )
