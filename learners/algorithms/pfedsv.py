"""pFedSV: every client plays a game with the models of others, and keeps what helps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch

import coalitions
from coalitions.errors import InvalidInputError
from coalitions.game import FloatVector, Game, IntVector
from coalitions.values.estimator import Estimator
from coalitions.values.estimators.permutation import Permutation
from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.algorithms._pfedsv_variants import (
    begun_with,
    distances_to_first,
    divisors,
    game_of_others,
    known_models,
    settled_newcomers,
    sharing_labels,
    similarities,
    similarity_weights,
    values_one_by_one,
)
from learners.client.model_games import ModelGame
from learners.client.tasks import describe, train
from learners.privacy.mechanism import as_published
from learners.rows.parameters import Cut, Layout, as_weights
from learners.settings.options import option
from learners.task import Asked, Message, Numbers, Reveals, task

if TYPE_CHECKING:
    from torch import Tensor

    from learners.client.client import Client
    from learners.server.federation import Federation
    from learners.settings.config import RunConfig

EXACT_MODELS = 7
"""Up to here all coalitions are fewer than the evaluations of 3|S| permutations."""

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
    def traits(self) -> Traits:
        """What the method needs: validation data; only a shared extractor is averaged."""
        steps = ("train", "pfedsv-collaborate")
        return Traits(
            asks=("describe", *steps) if self.told else steps,
            averages=self.shared_extractor,
            measures=() if self.utility == "loss" else (self.utility,),
            validates=True,
        )

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
            replies = federation.ask(describe, {c: {} for c in federation.clients}, measuring=True)
            state["told"] = sharing_labels(replies, n)
        return state

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Have everyone train, value what others trained, and combine it."""
        uploads = federation.ask(train, {c: {} for c in federation.present})
        present = np.array(list(uploads))
        rng = federation.rng("downloads")
        everyone = federation.config.participants == len(federation.clients)
        order = ("scan" if everyone else "mixed") if self.order == "auto" else self.order
        slots = {
            i: rng.permutation(self.choice(state, i, present[present != i], order, rng))
            for i in uploads
        }
        values = federation.ask(collaborate, self.messages(federation, uploads, slots))
        relevance, scored = state["relevance"].copy(), state["scored"].copy()
        self.learn({"relevance": relevance, "scored": scored}, slots, values)
        federation.record(
            relevance=relevance,
            downloads=[len(slots[c]) if c in slots else 0 for c in federation.clients],
            evaluations=sum(reply["evaluations"] for reply in values.values()),
        )
        return {**state, "relevance": relevance, "scored": scored}

    def learn(
        self,
        state: State,
        slots: Mapping[int, IntVector],
        values: Mapping[int, Message],
    ) -> None:
        """Enter the values of games into relevance and counts."""
        relevance, scored = state["relevance"], state["scored"]
        for i, reply in values.items():
            players = np.array([i, *slots[i]])
            relevance[i] = updated_relevance(relevance[i], players, reply["values"], self.alpha)
            scored[i, players] += 1

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Find neighbours among the members' models from scratch: value all, keep the best.

        A newcomer begins where the members began. In each step it trains, downloads `k` of the
        models that members trained last and that it never scored, values and combines them; when
        it has tried all, it does so once more with those that are good for it.
        """
        return settled_newcomers(self, federation, clients)

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

    def choice(
        self, state: State, i: int, others: IntVector, order: Order, rng: np.random.Generator
    ) -> IntVector:
        """Return which of the others client i downloads."""
        if self.told:
            sharing: IntVector = others[state["told"][i, others] > 0]
            return sharing
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

    def messages(
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
    values, evaluations = _values(client, method, models, compared)
    weights = _weights(client, method, values, compared)
    combined = as_weights(weights, models) @ models  # Eq. (7)
    client.memory |= {"trained": trained, "model": combined}
    if method.collaboration == "pairwise" or method.self_distance == "last":
        client.memory["before"] = combined  # what the next round's training begins with
    known = known_models(client, method, models)
    if known is not models:
        values, evaluations = _values(client, method, known, _compared_parts(client, method, known))
    return {"values": values, "evaluations": evaluations}


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
    weights = np.maximum(values, 0.0) / divisors(distances, floor, self_distance)
    if self_distance == "exclude":
        weights[0] = 0.0
    total = weights.sum()
    return weights / total if total > 0 else alone


def _weights(client: Client, method: PFedSV, values: FloatVector, compared: Tensor) -> FloatVector:
    """Return the weights of the models, the client's own first."""
    if method.collaboration in ("similarity", "cosine"):
        return similarity_weights(values, method.self_distance)
    distances, floor = distances_to_first(compared)
    if method.self_distance == "last":
        last = _compared_parts(client, method, begun_with(client)[None])
        distances[0] = distances_to_first(torch.cat([compared[:1], last]))[0][1]
    return collaboration_weights(values, distances, floor=floor, self_distance=method.self_distance)


def _values(
    client: Client, method: PFedSV, models: Tensor, compared: Tensor
) -> tuple[FloatVector, int]:
    """Return the value of each model, the client's own first, and the number of evaluations."""
    if method.collaboration in ("similarity", "cosine"):
        return similarities(compared, method.collaboration, method.self_distance), 0
    if method.collaboration == "pairwise":
        return values_one_by_one(
            _game(client, method, torch.cat([begun_with(client)[None], models]))
        )
    game: Game = _game(client, method, models)
    own = np.zeros(0)
    if method.players == "others":
        own = np.asarray(game(np.eye(1, len(models), dtype=bool)))  # v({i})
        if len(models) == 1:
            return own, 1
        game = game_of_others(game, float(own[0]))
    estimate = coalitions.shapley(
        game,
        _estimator(method, game.n_players),
        seed=client.stream("shapley").initial_seed() % 2**32,
        interruptible=False,  # Ctrl-C ends the run
    )
    return np.concatenate([own, estimate.values]), int(estimate.evaluations) + len(own)


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
