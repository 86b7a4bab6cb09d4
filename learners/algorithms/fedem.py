"""Every client's data is a mixture of K distributions, and its model a mixture of K models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch import nn

from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.client.training import EVALUATION_CHUNK, fit
from learners.devices import to_host
from learners.rows.parameters import as_weights, reinitialised
from learners.rows.workspace import predicted
from learners.settings.options import option
from learners.task import Message, Reveals, task

if TYPE_CHECKING:
    from torch import Tensor

    from learners.client.client import Client
    from learners.data.client_data import Batch, Kind
    from learners.server.federation import Federation


Weights: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]


@ALGORITHMS.register("fedem")
@dataclass(frozen=True)
class FedEM(Algorithm):
    r"""Federated expectation-maximisation over a mixture of K models [Marfoq2021]_.

    Algorithm 1, at client t with images :math:`s = 1 \dots n_t`:

    .. math::
        q_t(z_s = m) &\propto \pi_{tm}\, e^{-\ell(h_{\theta_m}(x_s), y_s)} \quad \text{(E-step)}, \\
        \pi_{tm} &= \tfrac{1}{n_t} \sum_s q_t(z_s = m), \\
        \theta_{m,t} &= \text{local SGD from } \theta_m \text{ on }
            \sum_s q_t(z_s = m)\, \ell(h_\theta(x_s), y_s) \quad \text{(M-step)},

    and the server averages each component, :math:`\theta_m = \sum_t \frac{n_t}{n} \theta_{m,t}`.
    A client predicts with the mixture of probabilities :math:`\sum_m \pi_{tm} h_{\theta_m}(x)`;
    what is stored as its single model is the component of the highest weight. The weights
    :math:`\pi_t` stay at home. K = 1 is federated averaging.

    A client that was never asked fits :math:`\pi_t` to its training data when it predicts, by the
    first two lines repeated with the components as they are: what the paper has clients do that
    join later. The authors' program takes one such step at each evaluation.

    Parameters
    ----------
    k
        Number of components K. The first starts where every method starts, the others elsewhere.
    """

    k: int = option(3, least=1, changes="traffic")

    @property
    def traits(self) -> Traits:
        """What the method needs: its own task, in which components see weighted samples."""
        return Traits(asks=("fedem",), stops_early=False)

    def start(self, federation: Federation) -> State:
        """Return the first components."""
        first, stream = federation.initial_model, federation.stream("components")
        others = [reinitialised(first, federation.layout, stream) for _ in range(self.k - 1)]
        return {"models": torch.stack([first, *others])}

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Average each component."""
        sent = {"models": state["models"]}
        replies = federation.ask(train_components, dict.fromkeys(federation.present, sent))
        rows = torch.stack([reply["models"] for reply in replies.values()], dim=1)
        sizes = rows.new_tensor([float(reply["samples"]) for reply in replies.values()])
        return {"models": torch.stack([federation.combine(each, sizes) for each in rows])}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Mix the components by weights that are fitted to the newcomer's training data."""
        return {c: {"models": state["models"]} for c in clients}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return the components for everyone, to mix by the own weights."""
        return {"mixture": {c: {"models": state["models"]} for c in federation.clients}}

    def model(self, client: Client, message: Message) -> Tensor:
        """Return the component of the highest weight."""
        row: Tensor = message["models"][int(self.weights(client, message["models"]).argmax())]
        return row

    def scores(self, client: Client, message: Message, inputs: Batch) -> Tensor:
        """Return the logarithms of the mixture's probabilities; of numbers, their mean."""
        outputs = []
        weights = self.weights(client, message["models"])
        for row in message["models"]:
            client.workspace.load(row)
            outputs.append(predicted(client.workspace.module, inputs))
        return mixed(outputs, weights, client.site.targets.kind)

    def weights(self, client: Client, models: Tensor) -> Weights:
        """Return π of a client; fitted to its training data if it never took part."""
        found: Weights | None = client.memory.get("weights")
        if found is not None:
            return found
        if self.k == 1:
            return np.ones(1)
        likelihoods = to_host(-torch.stack([_losses(client, row) for row in models], dim=1))
        pi = likelihoods.new_full((self.k,), 1 / self.k, dtype=torch.float64)
        for _ in range(MOST_STEPS):
            before, pi = pi, _responsibilities(pi, likelihoods).mean(0, dtype=torch.float64)
            if float((pi - before).abs().max()) < 1e-6:
                break
        return pi.numpy()


MOST_STEPS = 200
"""Most EM steps for the weights of a client that never took part."""

_LEAST = 1e-300
"""A weight that underflowed is this: its logarithm must be finite."""


@task("fedem", models=Reveals.MODEL, train_loss=Reveals.PROGRESS, samples=Reveals.SIZE)
def train_components(client: Client, message: Message) -> Message:
    """Share the images out among the components `models`, then train each on its share."""
    method, data = client.algorithm, client.data.train
    assert isinstance(method, FedEM)
    pi = client.memory.get("weights", np.full(method.k, 1 / method.k))
    losses = torch.stack([_losses(client, row) for row in message["models"]], dim=1)
    q = _responsibilities(torch.from_numpy(pi), -losses)
    client.memory["weights"] = to_host(q).mean(0, dtype=torch.float64).numpy()
    # The target of a sample is its number here: the loss looks up its target and its share.
    numbered = data.with_targets(torch.arange(len(data), device=data.targets.device))
    criterion = client.criterion
    fitted = []
    for m, row in enumerate(message["models"]):

        def loss(
            module: nn.Module, inputs: Batch, numbers: Tensor, share: Tensor = q[:, m]
        ) -> Tensor:
            each = criterion.each(predicted(module, inputs), data.targets[numbers])
            return (share[numbers] * each).mean()

        fitted.append(fit(client, row, data=numbered, loss=loss))
    return {
        "models": torch.stack([each.model for each in fitted]),
        "train_loss": sum(each.loss for each in fitted),
        "samples": len(data),
    }


def mixed(outputs: Sequence[Tensor], weights: Weights, kind: Kind) -> Tensor:
    r"""Return the outputs of a mixture: :math:`\sum_m \pi_m h_m` of probabilities or of numbers."""
    logs = [float(np.log(max(weight, _LEAST))) for weight in weights]
    if kind == "regression":
        return sum(
            (float(weight) * each for each, weight in zip(outputs, weights, strict=True)),
            torch.zeros_like(outputs[0]),
        )
    if kind == "multi-label":
        yes, no = (
            torch.logsumexp(
                torch.stack(
                    [
                        nn.functional.logsigmoid(sign * each) + log
                        for each, log in zip(outputs, logs, strict=True)
                    ]
                ),
                dim=0,
            )
            for sign in (1, -1)
        )
        return yes - no
    parts = [
        nn.functional.log_softmax(each, dim=-1) + log
        for each, log in zip(outputs, logs, strict=True)
    ]
    return torch.logsumexp(torch.stack(parts), dim=0)


def _responsibilities(pi: Tensor, log_likelihoods: Tensor) -> Tensor:
    """Return q [N, K]: whose each image is, by the E-step."""
    logs = as_weights(pi.clamp(min=_LEAST).log().numpy(), log_likelihoods)
    return torch.softmax(logs + log_likelihoods, dim=1)


def _losses(client: Client, model: Tensor) -> Tensor:
    """Return a model's loss on every training image."""
    client.workspace.load(model)
    client.workspace.module.eval()
    criterion = client.criterion
    with torch.no_grad():
        return torch.cat(
            [
                criterion.each(predicted(client.workspace.module, inputs), targets)
                for inputs, targets in client.data.train.chunks(EVALUATION_CHUNK)
            ]
        )
