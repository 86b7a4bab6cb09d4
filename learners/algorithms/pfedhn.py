"""A network on the server writes the parameters of every client's network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from learners.algorithm import ALGORITHMS, Algorithm, State, Traits
from learners.client.tasks import train
from learners.devices import to_device
from learners.rows.parameters import Layout
from learners.server.federation import NobodyAnsweredError
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
    client. It sends :math:`\theta_i = h(v_i; \varphi)` to one client after the other, in an order
    drawn anew in each round. The client trains it to :math:`\tilde\theta_i`. The server takes
    :math:`\Delta\theta_i = \theta_i - \tilde\theta_i` as the gradient at the output (Algorithm 1),
    and makes a step before it writes the next client's model:

    .. math::
        g_\varphi = (\nabla_\varphi \theta_i)^T \Delta\theta_i, \qquad
        g_{v_i} = (\nabla_{v_i} \theta_i)^T \Delta\theta_i,

    .. math::
        u \leftarrow \mu u + g, \qquad (\varphi, v) \leftarrow (\varphi, v) - \alpha u.

    Algorithm 1 has μ = 0; the momentum u, which all embeddings have, is that of the authors'
    program. Where a network has batch norm, its running statistics are averaged over the round:
    they are no parameters.

    The hypernetwork is that of the paper: linear layers with ReLUs between them, and a linear
    output for all parameters. Layers start as in the authors' program, as torch has them, but the
    output starts at the initial model of the run for every embedding. With `width` 0 nothing is
    left of the hypernetwork but the output's bias: then, without `turns`, with α = 1 and μ = 0, it
    is federated averaging for clients with equally much data.

    Parameters
    ----------
    server_lr
        Learning rate of the hypernetwork and the embeddings (α in the paper); that of the authors'
        program.
    server_momentum
        Momentum of these steps (μ); that of the authors' program.
    turns
        Whether clients take turns, as in the paper: a round of m clients has m steps, and takes as
        long as m clients one after the other. Otherwise all of a round train at once, and it has
        one step, down the gradient of their mean.
    embedding
        Length of an embedding; 1 + n/4 for n clients if None, as in the authors' program.
    width
        Units of a hidden layer. The output has `width` + 1 numbers for each parameter of a
        client's model, and as many for the momentum: for large models that is what the server's
        memory has to hold.
    hidden_layers
        Number of hidden layers.
    """

    server_lr: float = option(0.01, above=0, changes="models")
    server_momentum: float = option(0.9, least=0, most=0.999, changes="models")
    turns: bool = option(True, changes="models")
    embedding: int | None = option(None, least=1, unset="1 + n/4", changes="models")
    width: int = option(100, least=0, changes="models")
    hidden_layers: int = option(3, least=1, changes="models")

    @property
    def traits(self) -> Traits:
        """What the method needs; the hypernetwork learns from each client's change."""
        return Traits(averages=False)

    def start(self, federation: Federation) -> State:
        """Return a fresh hypernetwork and fresh embeddings."""
        n, stream = len(federation.clients), federation.stream("hypernetwork")
        length = self.embedding or 1 + n // 4
        model, size = federation.initial_model, federation.layout.n_parameters
        hypernetwork = []
        for name, shape in self.layout(length, size).shapes.items():
            if name == "output.bias":
                hypernetwork.append(federation.layout.parameters(model))
            elif name == "output.weight":
                hypernetwork.append(model.new_zeros(math.prod(shape)))
            else:
                # What torch gives a linear layer, its bias too: uniform within 1/√(its inputs).
                inputs = length if name.startswith("input") else self.width
                reach = 1 / math.sqrt(max(inputs, 1))
                drawn = 2 * torch.rand(shape, generator=stream) - 1
                hypernetwork.append(reach * drawn.reshape(-1))
        written = torch.cat([to_device(part, model.device) for part in hypernetwork])
        embeddings = to_device(torch.randn(n, length, generator=stream), model.device)
        return {
            "hypernetwork": written,
            "embeddings": embeddings,
            "velocity": torch.zeros_like(written),
            "embedding_velocity": torch.zeros_like(embeddings),
            "buffers": model[size:].clone(),
        }

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Have one client after the other train what the hypernetwork wrote for it."""
        # Drawn for all clients: who is away does not change the order of the others.
        order = federation.rng("turns").permutation(len(federation.clients)).tolist()
        present = [c for c in order if c in federation.present]
        buffers: list[Tensor] = []
        nobody: NobodyAnsweredError | None = None
        for clients in [[c] for c in present] if self.turns else [sorted(present)]:
            try:
                trained = self._trained(federation, state, clients)
            except NobodyAnsweredError as error:  # the others have their turns all the same
                nobody = error
                continue
            state = self._stepped(federation, state, trained)
            buffers += [row[federation.layout.n_parameters :] for row in trained.values()]
        if nobody is not None and not buffers:
            raise nobody
        return {**state, "buffers": torch.stack(buffers).mean(0)}

    def _trained(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Tensor]:
        """Return what clients made of the models that the hypernetwork wrote for them."""
        models = self.models(state, clients)
        sent = {c: {"model": row} for c, row in zip(clients, models, strict=True)}
        return {c: reply["model"] for c, reply in federation.ask(train, sent).items()}

    def _stepped(
        self,
        federation: Federation,
        state: State,
        trained: Mapping[int, Tensor],
        *,
        fixed: bool = False,
    ) -> State:
        """Return the hypernetwork and the embeddings after a step towards what was trained.

        With `fixed`, the embeddings alone move.
        """
        clients, layout = list(trained), federation.layout
        weights = state["hypernetwork"].detach().requires_grad_(not fixed)
        embeddings = state["embeddings"].detach().requires_grad_(True)
        with torch.enable_grad():
            theta = self.generate(weights, embeddings[clients], layout.n_parameters)
        delta = theta.detach() - layout.parameters(torch.stack(list(trained.values())))
        slopes = torch.autograd.grad(
            theta,
            (embeddings,) if fixed else (embeddings, weights),
            grad_outputs=delta / len(clients),
            materialize_grads=True,
        )
        moved = dict(state)
        for name, velocity, slope in zip(
            ("embeddings", "hypernetwork"), ("embedding_velocity", "velocity"), slopes, strict=False
        ):
            moved[velocity] = self.server_momentum * state[velocity] + slope
            moved[name] = state[name] - self.server_lr * moved[velocity]
        return moved

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Learn an embedding for as many rounds as the members, with the hypernetwork as it is."""
        begun = state["embeddings"].mean(0, keepdim=True)
        found: dict[int, State] = {
            c: {**state, "embeddings": begun, "embedding_velocity": torch.zeros_like(begun)}
            for c in clients
        }
        for _ in range(federation.config.rounds):
            sent = {c: {"model": self.models(own, [0])[0]} for c, own in found.items()}
            replies = federation.ask(train, sent, measuring=True)
            found = {
                c: self._stepped(federation, found[c], {0: reply["model"]}, fixed=True)
                for c, reply in replies.items()
            }
            federation.round += 1  # another order of the data
        return {c: {"model": self.models(own, [0])[0]} for c, own in found.items()}

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
