"""Every client weighs others' models by what they would do for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from coalitions.errors import InvalidInputError
from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.client.model_games import examined
from learners.client.tasks import deploy, train
from learners.client.training import fit
from learners.devices import to_host
from learners.privacy.mechanism import as_published
from learners.rows.parameters import as_weights
from learners.settings.options import option
from learners.task import Message, Numbers, Reveals, each, task

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from learners.client.client import Client
    from learners.server.federation import Federation


@ALGORITHMS.register("fedfomo")
@dataclass(frozen=True)
class FedFomo(Algorithm):
    r"""First-order model optimisation: models combined by their use to the client [Zhang2021]_.

    After training, client i downloads k of the round's models and weighs them and its own by the
    validation loss (j = i included),

    .. math:: w_{ij} = \frac{L_i(\theta_i^{t-1}) - L_i(\theta_j^t)}
              {\lVert \theta_j^t - \theta_i^{t-1} \rVert},

    clips them at 0 and normalises them; then

    .. math:: \theta_i^t = \theta_i^{t-1} + \sum_j w_{ij}^+\,(\theta_j^t - \theta_i^{t-1}).

    If no model is better, it stays at :math:`\theta_i^{t-1}`. The server adds up the weights as
    they are, sign included: :math:`P_{ij} \leftarrow P_{ij} + w_{ij}`. A model that did harm thus
    ranks below one that was never tried. For each of the k downloads of client i a coin is thrown:
    with probability ε (`explore`) it is a random model, else the one of the highest
    :math:`P_{ij}` that is left (ties at random).

    The authors' program divides the weights of a client by the absolute value of their sum before
    it adds them to P. Gains and losses may cancel there and blow a single round up, so we add what
    the paper writes.

    Parameters
    ----------
    k
        Models to download in a round, besides the own; the paper's M. With 0, a client only
        decides whether to take its own step.
    explore
        Chance to download a random model instead of the best, at the start (ε in the paper).
    explore_decay
        What this chance loses in each round, down to 0.
    """

    relevance_is: ClassVar[str] = "weights"
    k: int = option(5, least=0, changes="traffic")
    explore: float = option(0.3, least=0, most=1, changes="relevance")
    explore_decay: float = option(0.05, least=0, changes="relevance")

    @property
    def traits(self) -> Traits:
        """What the method needs: validation data, on which every client weighs models."""
        return Traits(asks=("fedfomo-train", "fedfomo-weigh"), averages=False, validates=True)

    def start(self, federation: Federation) -> State:
        """Return nobody's preference for anybody."""
        n = len(federation.clients)
        return {"affinity": np.zeros((n, n))}

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Have clients train, hand out models, and add up the weights they give them."""
        trained = federation.ask(train_aside, {c: {} for c in federation.present})
        rng = federation.rng("downloads")
        explore = max(0.0, self.explore - self.explore_decay * (t - 1))
        affinity = state["affinity"].copy()
        offers = {
            i: self.choice(affinity[i], [j for j in trained if j != i], explore, rng)
            for i in trained
        }
        nothing = federation.initial_model.new_empty(0, federation.layout.size)
        messages = {
            i: {"models": torch.stack([trained[j]["model"] for j in chosen]) if chosen else nothing}
            for i, chosen in offers.items()
        }
        relevance = np.zeros_like(affinity)
        for i, reply in federation.ask(weigh, messages).items():
            weighed = [i, *offers[i]]
            affinity[i, weighed] += reply["weights"]
            relevance[i, weighed] = shares(torch.from_numpy(reply["weights"])).numpy()
        federation.record(relevance=relevance)
        return {"affinity": affinity}

    def choice(
        self,
        affinity: NDArray[np.float64],
        others: Sequence[int],
        explore: float,
        rng: np.random.Generator,
    ) -> list[int]:
        """Return whose models a client gets: one by one, at random or the one it likes best."""
        random = rng.permutation(np.asarray(others, dtype=np.int64)).tolist()
        ties = rng.permutation(np.asarray(others, dtype=np.int64))
        liked = ties[np.argsort(-affinity[ties], kind="stable")].tolist()
        chosen: list[int] = []
        for coin in rng.random(min(self.k, len(others))):
            queue = random if coin < explore else liked
            chosen.append(next(j for j in queue if j not in chosen))
        return sorted(chosen)

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Train from the first model, weigh the models of all members, and train the mixture."""
        rows = federation.ask(deploy, {c: {} for c in federation.clients}, measuring=True)
        models = torch.stack([reply["model"] for reply in rows.values()])
        trained = federation.ask(train_aside, {c: {} for c in clients}, measuring=True)
        weighed = federation.ask(weigh, {c: {"models": models} for c in trained}, measuring=True)
        federation.round += 1  # another order of the data
        tuned = federation.ask(train, {c: {"send": False} for c in weighed}, measuring=True)
        return {c: {} for c in tuned}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return nothing for anyone: each client has its model."""
        return {"personal": {c: {} for c in federation.clients}}


@task(
    "fedfomo-train",
    by_fit=True,
    model=Reveals.MODEL,
    train_loss=Reveals.PROGRESS,
    samples=Reveals.SIZE,
)
def train_aside(client: Client, message: Message) -> Message:
    """Train from the own model and send the result; the own model stays until it is weighed."""
    fitted = fit(client, client.own_model)
    client.memory["trained"] = fitted.model
    return {
        "model": fitted.model,
        "train_loss": fitted.loss,
        "samples": len(client.data.train),
    }


@task("fedfomo-weigh", weights=(Reveals.HELD_OUT, Numbers(each("models", 1))))
def weigh(client: Client, message: Message) -> Message:
    """Move the own model by the weights of the trained one and of `models`; tell the weights.

    They are told with their signs: the server ranks by them.
    """
    if len(client.data.validation) == 0:
        raise InvalidInputError(
            "fedfomo weighs models on validation data; choose a validation_share above 0"
        )
    before, trained = client.own_model, client.memory.pop("trained")
    models = torch.cat([trained[None], message["models"]])
    weights = first_order_weights(client, before, models)
    if float(weights.max()) > 0:
        # Shares add to one, so the sum of steps is the mean of the models themselves.
        client.memory["model"] = _mixed(models, weights)
    known = as_published(client, "model", trained)
    if known is not trained:
        weights = _weights_to_tell(client, torch.cat([known[None], message["models"]]))
    return {"weights": weights.numpy()}


def _weights_to_tell(client: Client, models: Tensor) -> Tensor:
    """Return the weights of a client that had only what was sent, where uploads are noised.

    The clean models must not speak through them. The server could follow every step of such a
    client, up to the weights themselves, which are then about the validation data alone.
    """
    weights = first_order_weights(client, client.memory.get("known", client.site.initial), models)
    if float(weights.max()) > 0:
        client.memory["known"] = _mixed(models, weights)
    return weights


def first_order_weights(client: Client, before: Tensor, models: Tensor) -> Tensor:
    """Return w of every row of `models`, with its sign; 0 for a row that is `before` itself."""
    workspace, data = client.workspace, client.data.validation
    rows = torch.cat([before[None], models])
    losses = [each.loss for each in examined(client, rows, data)]
    parameters = workspace.layout.parameters
    # In double precision, which not every device has: on the host.
    apart = to_host((parameters(models) - parameters(before)).norm(dim=1)).double()
    gain = losses[0] - apart.new_tensor(losses[1:])
    # A model whose loss is no number is of no use, and must not make the sum of weights none.
    return torch.where((apart > 0) & gain.isfinite(), gain / apart, 0.0)


def _mixed(models: Tensor, weights: Tensor) -> Tensor:
    share = shares(weights)
    return as_weights(share / share.sum(), models) @ models


def shares(weights: Tensor) -> Tensor:
    """Return the weights clipped at 0 and normalised; all 0 if none is positive."""
    useful = weights.clamp(min=0.0)
    total = useful.sum()
    return useful / total if float(total) > 0 else useful
