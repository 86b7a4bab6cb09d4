"""FedC²I: a client weighs others by what it would lose without them, and so it does classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.client.model_games import Outputs
from learners.client.stacked_testing import pays
from learners.client.tasks import train
from learners.client.training import batches
from learners.data.client_data import IGNORED
from learners.devices import to_device, to_host
from learners.measures.losses import CROSS_ENTROPY, OwnLoss
from learners.rows.parameters import Layout, as_weights, weighted_mean
from learners.settings.options import option
from learners.task import Message, Numbers, Reveals, each, task

if TYPE_CHECKING:
    from learners.client.client import Client, Samples
    from learners.measures.losses import Criterion
    from learners.rows.workspace import Workspace
    from learners.server.federation import Federation
    from learners.settings.config import RunConfig

LEAST_LOSS = 1e-12
"""Losses are taken to be at least this: a power of 0 would be 0, and 0/0 if all are."""


@ALGORITHMS.register("fedc2i")
@dataclass(frozen=True)
class FedC2I(Algorithm):
    r"""Personalised federated learning by client- and class-level influence [Tan2024]_.

    A model is a feature extractor :math:`\theta` and a linear classifier :math:`\varphi` with one
    weight vector (and bias) :math:`\varphi_c` per class (Eq. 2). Client m receives the models of
    all M clients that take part. On one random batch it measures how its loss changes without
    client i, for the features as a whole and for the classifier class by class, and mixes:

    .. math:: \theta^{-i} &= \tfrac{1}{M-1} \textstyle\sum_{j \ne i} \theta_j,
              \quad l^{-i} = \text{loss of } \{\theta^{-i}, \varphi_m\} \tag{4}

        \lambda^i &= (l^{-i})^\gamma \big/ \textstyle\sum_j (l^{-j})^\gamma \tag{5}

        \bar\theta &= \textstyle\sum_i \lambda^i \theta_i \tag{6}

        \varphi^{-i}_c &= \tfrac{1}{M-1} \textstyle\sum_{j \ne i} \varphi_{j,c}, \quad
        l^{i,-c} = \text{loss of } \{\theta_m, \varphi_m\}
        \text{ with } \varphi^{-i}_c \text{ for } \varphi_{m,c} \tag{7}

        \Lambda^{i,c} &= (l^{i,-c})^\gamma \big/ \textstyle\sum_j (l^{j,-c})^\gamma \tag{9}

        \bar\varphi_c &= \textstyle\sum_i \Lambda^{i,c} \varphi_{i,c} \tag{10}

    :math:`\lambda` are its influences, :math:`\Lambda` its influence matrix.
    Then it trains :math:`\{\bar\theta, \bar\varphi\}` and uploads the result. (Eq. 10 of the paper
    prints :math:`\varphi_{m,c}` in the sum, which would leave the classifier as it was.) A client
    that is alone keeps its model.

    Parameters
    ----------
    gamma
        How strongly losses tell clients apart; 0 gives everyone the same weight.
    variant
        ``full``; or one of the paper's Table 3: ``client`` (−λ, only the features are weighed),
        ``class-local`` (Λ/l, only classes, with the client's own features), ``class-global`` (Λ/g,
        only classes, with the mean of all features).
    client_classifier
        The classifier of the variant ``client``, which the paper does not give: the ``mean`` of
        all, or the client's own (``local``).
    """

    relevance_is: ClassVar[str] = "influence"
    gamma: float = option(5.0, least=0, changes="models")
    variant: Literal["full", "client", "class-local", "class-global"] = option(
        "full", changes="models"
    )
    client_classifier: Literal["mean", "local"] = option(
        "mean", needs={"variant": "client"}, changes="models"
    )

    @property
    def traits(self) -> Traits:
        """What the method needs; every client mixes for itself."""
        return Traits(asks=("fedc2i-mix", "train"), averages=False)

    def check(self, config: RunConfig, layout: Layout) -> None:
        """Refuse a network without a linear head: features and classifier are mixed apart."""
        layout.parts("head")

    def start(self, federation: Federation) -> State:
        """Return everyone's first model."""
        n = len(federation.clients)
        return {
            "models": federation.initial_model.repeat(n, 1),
            "samples": np.ones(n),  # not known yet, and equal models have any mean in common
        }

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Have everyone present weigh and mix the others' models, then train and upload."""
        models, samples = state["models"].clone(), state["samples"].copy()
        present = list(federation.present)
        peers = {m: [i for i in present if i != m] for m in present}
        influences = federation.ask(
            mix,
            {m: {"models": models[peers[m]], "samples": samples[[m, *peers[m]]]} for m in present},
        )
        trained = federation.ask(train, {m: {} for m in influences})
        for m, reply in trained.items():
            models[m], samples[m] = reply["model"], reply["samples"]
        relevance = np.zeros((len(models), len(models)))
        for m, reply in influences.items():
            relevance[m, [m, *peers[m]]] = reply["influence"]
        federation.record(relevance=relevance)
        return {"models": models, "samples": samples}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Train the mean model, mix the stored ones by their influences, and train the mixture."""
        stored = state["models"]
        begin = {"model": stored.mean(0), "keep": True, "send": False}
        first = federation.ask(train, dict.fromkeys(clients, begin), measuring=True)
        sent = {
            c: {"models": stored, "samples": np.array([reply["samples"], *state["samples"]])}
            for c, reply in first.items()
        }
        mixed = federation.ask(mix, sent, measuring=True)
        federation.round += 1  # another order of the data
        tuned = federation.ask(train, {c: {"send": False} for c in mixed}, measuring=True)
        return {c: {} for c in tuned}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return nothing for anyone: each client has the model it trained."""
        return {"personal": {c: {} for c in federation.clients}}


@task("fedc2i-mix", influence=(Reveals.METRIC, Numbers(each("models", 1), least=0, most=1)))
def mix(client: Client, message: Message) -> Message:
    """Weigh the models that were received, with one's own, and begin with their mixture.

    Parameters
    ----------
    client
        The client m.
    message
        `models` [M−1, P] of the others, `samples` [M] of the client itself and then of the others.
        The reply has `influence`: λ in the same order (equal weights where the variant has none).
    """
    method = client.algorithm
    assert isinstance(method, FedC2I)
    workspace = client.workspace
    models = torch.cat([client.own_model[None], message["models"]])
    n = len(models)
    equal = np.full(n, 1 / n)
    if n == 1:
        return {"influence": equal}
    batch = _one_batch(client)
    weighs_features = method.variant in ("full", "client")
    weighs_classes = method.variant != "client"
    questions: dict[str, Outputs] = {}
    if weighs_features:
        questions["without each"] = Outputs(client, without_each(workspace.layout, models), batch)
    if weighs_classes:
        layer = classifier_part(workspace.layout)
        questions["at the classifier"] = Outputs(client, models[:1], batch, layer)
    outputs = dict(zip(questions, client.find_out(list(questions.values())), strict=True))
    mixture, influence = models[0].clone(), torch.from_numpy(equal)
    features, classifier = workspace.layout.parts(device=models.device)
    sizes = as_weights(message["samples"], models)

    if weighs_features:
        losses = losses_of(outputs["without each"], batch.targets, client.criterion)
        influence = weights_of_losses(losses, method.gamma)  # λ [M], Eq. (5)
        mixture[features] = as_weights(influence.numpy(), models) @ models[:, features]  # Eq. (6)
    elif method.variant == "class-global":
        mixture[features] = weighted_mean(models[:, features], sizes)

    if weighs_classes:
        parts = Classifiers.of(workspace, models)
        vectors = with_one(outputs["at the classifier"][0], workspace.layout)
        if workspace.goal.targets.has_classes:
            rows, labels = _classified(vectors, batch.targets)
            losses = class_losses(rows, labels, parts.vectors)
        else:
            losses = output_losses(vectors, batch.targets, parts.vectors, client.criterion)
        influence_matrix = weights_of_losses(losses, method.gamma)  # Λ [M, C], Eq. (9)
        columns = as_weights(influence_matrix.numpy(), models)
        parts.put(mixture, torch.einsum("ic,icf->cf", columns, parts.vectors))  # Eq. (10)
    elif method.client_classifier == "mean":
        mixture[classifier] = weighted_mean(models[:, classifier], sizes)

    client.memory["model"] = mixture
    return {"influence": influence.numpy()}


def _classified(vectors: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return what is classified, and as what: samples, or tokens one by one."""
    if targets.dim() == 1:
        return vectors, targets
    counted = (to_host(targets).flatten() != IGNORED).nonzero().flatten()
    at = to_device(counted, targets.device)
    return vectors.reshape(-1, vectors.shape[-1])[at], targets.flatten()[at]


def leave_one_out(rows: Tensor) -> Tensor:
    r"""Return :math:`\tfrac{1}{M-1} \sum_{j \ne i}` of the rows [M, …], for each i: Eqs. (4), (7).

    Examples
    --------
    >>> leave_one_out(torch.tensor([[0.0], [2.0], [4.0]]))
    tensor([[3.],
            [2.],
            [1.]])
    """
    n = len(rows)
    others = (1 - torch.eye(n, dtype=rows.dtype, device=rows.device)) / (n - 1)
    return torch.einsum("ij,j...->i...", others, rows)


def weights_of_losses(losses: Tensor, gamma: float) -> Tensor:
    r"""Return :math:`l_i^\gamma / \sum_j l_j^\gamma` along the first axis: Eqs. (5) and (9).

    Computed as a softmax of :math:`\gamma \log l`, which no γ can overflow.

    Examples
    --------
    >>> weights_of_losses(torch.tensor([1.0, 3.0]), 1.0)
    tensor([0.2500, 0.7500], dtype=torch.float64)
    """
    return torch.softmax(gamma * to_host(losses).double().clamp(min=LEAST_LOSS).log(), dim=0)


def without_each(layout: Layout, models: Tensor) -> Tensor:
    r"""Return :math:`\{\theta^{-i}, \varphi_m\}` for each i, m the first: [M, P]."""
    features, _ = layout.parts(device=models.device)
    rows = models[:1].repeat(len(models), 1)
    rows[:, features] = leave_one_out(models[:, features])  # Eq. (4)
    return rows


def losses_of(outputs: Tensor, targets: Tensor, criterion: Criterion = CROSS_ENTROPY) -> Tensor:
    """Return the losses [M] of what M models give for a batch, [M, B, …]."""
    if isinstance(criterion, OwnLoss) or not pays(outputs.device):
        # A loss of the user's need not be one that torch can stack.
        return torch.stack([criterion.mean(each, targets) for each in outputs])
    losses: Tensor = vmap(criterion.mean, in_dims=(0, None))(outputs, targets)
    return losses


def class_losses(vectors: Tensor, labels: Tensor, classifiers: Tensor) -> Tensor:
    r"""Return :math:`l^{i,-c}` [M, C], without a further pass through the network.

    Only column c of the logits changes if :math:`\varphi^{-i}_c` replaces :math:`\varphi_{m,c}`.
    With :math:`z` the client's own logits and :math:`z'_{ic}` the new column, the loss of an image
    of class y is :math:`\log(e^{z'_{ic}} + \sum_{d \ne c} e^{z_d})` minus the logit of y.

    Parameters
    ----------
    vectors
        What the client's own features are of a batch, with a one for the bias, [B, F].
    labels
        Classes, [B].
    classifiers
        A vector per client and class, the client's own first, [M, C, F].
    """
    own = vectors @ classifiers[0].T  # [B, C]
    changed = torch.einsum("bf,icf->ibc", vectors, leave_one_out(classifiers))  # Eq. (7)
    n_classes = own.shape[1]
    itself = torch.eye(n_classes, dtype=torch.bool, device=own.device)
    rest = own[:, None].masked_fill(itself, -torch.inf).logsumexp(dim=2)  # [B, C]: without c
    at_label = own.gather(1, labels[:, None])  # [B, 1]
    is_label = itself[labels]  # [B, C]
    target = torch.where(is_label, changed, at_label.expand_as(own))
    return (torch.logaddexp(changed, rest) - target).mean(dim=1)


def output_losses(
    vectors: Tensor, targets: Tensor, classifiers: Tensor, criterion: Criterion
) -> Tensor:
    """Return what `class_losses` does for outputs that are no classes: [M, outputs]."""
    own = vectors @ classifiers[0].T
    changed = torch.einsum("bf,icf->ibc", vectors, leave_one_out(classifiers))  # Eq. (7)
    losses = vectors.new_zeros(len(classifiers), own.shape[1])
    for i, c in np.ndindex(losses.shape):
        given = own.clone()
        given[:, c] = changed[i, :, c]
        losses[i, c] = criterion.mean(given, targets)
    return losses


@dataclass(frozen=True, eq=False)
class Classifiers:
    """The classifiers of some models as one vector per class, the bias its last entry.

    Attributes
    ----------
    vectors
        [M, C, F + 1], or [M, C, F] for a classifier without bias.
    """

    vectors: Tensor
    _layout: Layout

    @classmethod
    def of(cls, workspace: Workspace, models: Tensor) -> Classifiers:
        """Return the classifiers of models, [M, P]."""
        layout = workspace.layout
        weight, bias = _names(layout)
        columns = layout.columns
        vectors = models[:, columns[weight]].reshape(len(models), *layout.shapes[weight])
        if bias is not None:
            vectors = torch.cat([vectors, models[:, columns[bias]][..., None]], dim=2)
        return cls(vectors, layout)

    def put(self, model: Tensor, vectors: Tensor) -> None:
        """Write a classifier's vectors [C, ·] into a model."""
        weight, bias = _names(self._layout)
        _, width = self._layout.shapes[weight]
        model[self._layout.columns[weight]] = vectors[:, :width].reshape(-1)
        if bias is not None:
            model[self._layout.columns[bias]] = vectors[:, width]


def with_one(vectors: Tensor, layout: Layout) -> Tensor:
    """Return what the classifier sees of a batch, with a one for its bias if it has one."""
    _, bias = _names(layout)
    if bias is None:
        return vectors
    return torch.cat([vectors, torch.ones_like(vectors[..., :1])], dim=-1)


def _names(layout: Layout) -> tuple[str, str | None]:
    """Return the names of the classifier's weight matrix and of its bias, if it has one."""
    layout.parts()  # says so if there is no classifier
    names = layout.classifiers["head"]
    (weight,) = (name for name in names if name.rpartition(".")[2] == "weight")
    return weight, next((name for name in names if name != weight), None)


def classifier_part(layout: Layout) -> str:
    """Return the name of the linear layer that is the classifier."""
    return _names(layout)[0].rpartition(".")[0]


def _one_batch(client: Client) -> Samples:
    data = client.data.train
    (chosen,) = batches(client, len(data), "influence", steps=1)
    return data.some(chosen)
