"""A network on the server writes the parameters of every client's network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from learners.algorithm import ALGORITHMS, Algorithm, State
from learners.client.tasks import train
from learners.devices import to_device
from learners.rows.parameters import Layout
from learners.settings.options import option

if TYPE_CHECKING:
    from torch import Tensor

    from learners.server.federation import Federation
    from learners.task import Message


@ALGORITHMS.register("pfedhn")
@dataclass(frozen=True)
class PFedHN(Algorithm):
    r"""Personalised federated learning by a hypernetwork [Shamsian2021]_.

    The server has a hypernetwork :math:`h(\cdot; \varphi)` and an embedding :math:`v_i` of each
    client, and sends :math:`\theta_i = h(v_i; \varphi)`. The client trains it to
    :math:`\tilde\theta_i`, and with :math:`\Delta\theta_i = \theta_i - \tilde\theta_i` as the
    gradient that reaches the output (Algorithm 1),

    .. math::
        \varphi &\leftarrow \varphi - \tfrac{\alpha}{m} \sum_i
            (\nabla_\varphi \theta_i)^T \Delta\theta_i, \\
        v_i &\leftarrow v_i - \tfrac{\alpha}{m}\, (\nabla_{v_i} \theta_i)^T \Delta\theta_i.

    The paper takes one client at a time (m = 1); here the m clients of a round train at once, and
    the step is down the gradient of their mean. Where a network has batch norm, its running
    statistics are averaged: they are no parameters.

    The hypernetwork is that of the paper: linear layers with ReLUs between them, and a linear
    output for all parameters. The output starts at the initial model of the run for every
    embedding. With `width` 0 nothing is left of it but the output's bias: then it is federated
    averaging, for clients with equally much data and α = 1.

    Parameters
    ----------
    server_lr
        Learning rate of the hypernetwork (α in the paper); that of the authors' program, which has
        momentum 0.9 besides. Hidden layers start at He's scale here (there: torch's default,
        smaller), so that a step moves models further.
    embedding
        Length of an embedding; 1 + n/4 for n clients if None, as in the authors' program.
    width
        Units of a hidden layer. The output has `width` + 1 numbers for each parameter of a
        client's model: for large models that is what the server's memory has to hold.
    hidden_layers
        Number of hidden layers.
    """

    server_lr: float = option(0.01, above=0, changes="models")
    embedding: int | None = option(None, least=1, unset="1 + n/4", changes="models")
    width: int = option(100, least=0, changes="models")
    hidden_layers: int = option(3, least=1, changes="models")

    @property
    def averages(self) -> bool:
        """No: the hypernetwork learns from each client's change."""
        return False

    def start(self, federation: Federation) -> State:
        """Return a fresh hypernetwork and fresh embeddings."""
        n, stream = len(federation.clients), federation.stream("hypernetwork")
        length = self.embedding or 1 + n // 4
        model, size = federation.initial_model, federation.layout.n_parameters
        hypernetwork = []
        for name, shape in self.layout(length, size).shapes.items():
            if name == "output.bias":
                hypernetwork.append(federation.layout.parameters(model))
            elif name == "output.weight" or name.endswith("bias"):
                hypernetwork.append(model.new_zeros(math.prod(shape)))
            else:
                # He's initialisation keeps the scale of what passes a ReLU.
                scale = math.sqrt(2 / max(shape[1], 1))
                hypernetwork.append(scale * torch.randn(shape, generator=stream).reshape(-1))
        return {
            "hypernetwork": torch.cat([to_device(part, model.device) for part in hypernetwork]),
            "embeddings": to_device(torch.randn(n, length, generator=stream), model.device),
            "buffers": model[size:].clone(),
        }

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Have clients train what the hypernetwork wrote, and pass back how they changed it."""
        weights, buffers = state["hypernetwork"].clone(), state["buffers"]
        present = list(federation.present)
        models = self.models(state, present)
        replies = federation.ask(
            train, {c: {"model": row} for c, row in zip(present, models, strict=True)}
        )
        answered = list(replies)
        trained = torch.stack([reply["model"] for reply in replies.values()])
        embeddings = state["embeddings"][answered].requires_grad_(True)
        weights.requires_grad_(True)
        with torch.enable_grad():
            theta = self.generate(weights, embeddings, federation.layout.n_parameters)
        delta = theta.detach() - federation.layout.parameters(trained)
        for_weights, for_embeddings = torch.autograd.grad(
            theta, (weights, embeddings), grad_outputs=delta / len(delta), materialize_grads=True
        )
        moved = state["embeddings"].clone()
        moved[answered] -= self.server_lr * for_embeddings
        if len(buffers):
            buffers = trained[:, federation.layout.n_parameters :].mean(0)
        return {
            "hypernetwork": weights.detach().sub_(for_weights, alpha=self.server_lr),
            "embeddings": moved,
            "buffers": buffers,
        }

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Learn an embedding for as many rounds as the members, with the hypernetwork as it is."""
        size = federation.layout.n_parameters
        embeddings = state["embeddings"].mean(0).repeat(len(clients), 1)
        for _ in range(federation.config.rounds):
            models = self.models({**state, "embeddings": embeddings}, list(range(len(clients))))
            replies = federation.ask(
                train,
                {c: {"model": row} for c, row in zip(clients, models, strict=True)},
                measuring=True,
            )
            embeddings = embeddings[[clients.index(c) for c in replies]].requires_grad_(True)
            clients = list(replies)
            with torch.enable_grad():
                theta = self.generate(state["hypernetwork"], embeddings, size)
            trained = torch.stack([reply["model"] for reply in replies.values()])
            (slope,) = torch.autograd.grad(
                theta,
                (embeddings,),
                grad_outputs=theta.detach() - federation.layout.parameters(trained),
                materialize_grads=True,
            )
            embeddings = embeddings.detach() - self.server_lr * slope
            federation.round += 1  # another order of the data
        models = self.models({**state, "embeddings": embeddings}, list(range(len(clients))))
        return {c: {"model": row} for c, row in zip(clients, models, strict=True)}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return what the hypernetwork writes for each client."""
        models = self.models(state, list(federation.clients))
        return {"personal": {c: {"model": models[c]} for c in federation.clients}}

    def models(self, state: State, clients: list[int]) -> Tensor:
        """Return the models [m, P] of some clients."""
        size = self._output_size(state)
        with torch.no_grad():
            theta = self.generate(state["hypernetwork"], state["embeddings"][clients], size)
        return torch.cat([theta, state["buffers"].expand(len(clients), -1)], dim=1)

    def generate(self, weights: Tensor, embeddings: Tensor, size: int) -> Tensor:
        """Return h(v; φ) [m, size] of embeddings [m, d]."""
        part = self.layout(embeddings.shape[1], size).views(weights)
        vectors = nn.functional.linear(embeddings, part["input.weight"], part["input.bias"])
        for number in range(self.hidden_layers):
            vectors = nn.functional.linear(
                vectors.relu(), part[f"hidden.{number}.weight"], part[f"hidden.{number}.bias"]
            )
        return nn.functional.linear(vectors, part["output.weight"], part["output.bias"])

    def layout(self, embedding: int, size: int) -> Layout:
        """Return which columns of the flat φ are which layer."""
        widths = {"input": (self.width, embedding)}
        widths |= {f"hidden.{i}": (self.width, self.width) for i in range(self.hidden_layers)}
        widths |= {"output": (size, self.width)}
        shapes: dict[str, tuple[int, ...]] = {}
        for name, shape in widths.items():
            shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
        return Layout(shapes, sum(map(math.prod, shapes.values())))

    def _output_size(self, state: State) -> int:
        """Return how many parameters the flat φ writes, from its length."""
        length = state["embeddings"].shape[1]
        hidden = self.layout(length, 0).size
        return (len(state["hypernetwork"]) - hidden) // (self.width + 1)
