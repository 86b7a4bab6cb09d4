"""A client's own work with a model: train it, differentiate it, test it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from coalitions.errors import InvalidInputError, with_keywords
from learners.client.client import Client, Samples
from learners.client.randomness import taking
from learners.data.client_data import Batch
from learners.devices import seeded_draws, to_host
from learners.measures.goal import Goal, Score
from learners.measures.metrics import Metric
from learners.privacy.mechanism import RATE, STEPS, Privacy, sampling_rate, steps_of_pass
from learners.privacy.per_sample import LossOfOne, private_gradient
from learners.rows.parameters import Params
from learners.rows.workspace import Loss, Workspace, predicted
from learners.settings.seeding import seed_of

Objective = Callable[[Tensor, Params, Params], Tensor]
"""Maps a batch's loss, the parameters and those received to what is minimised."""

EVALUATION_CHUNK = 200
"""Samples per pass where nothing is updated; larger passes were no faster."""


@dataclass(frozen=True)
class Fitted:
    """What `fit` returns.

    Attributes
    ----------
    model
        The trained model, as a row: one flat tensor with all its numbers.
    loss
        Its mean loss over the batches it was trained on.
    """

    model: Tensor
    loss: float


@dataclass(frozen=True, eq=False)
class Fit:
    """What `fit` is asked; see there."""

    client: Client
    start: Tensor
    anchor: Tensor
    data: Samples
    purpose: str
    lr: float
    epochs: int | None = None
    steps: int | None = None
    loss: Loss | None = None
    objective: Objective | None = None
    proximal: float = 0.0
    only: frozenset[str] | None = None
    leaves: bool = True

    @property
    def privacy(self) -> Privacy | None:
        """What protects the result; None if nothing does, or needs to."""
        protects = self.leaves and not self.client.watched
        return self.client.site.privacy if protects else None

    def alone(self) -> Fitted:
        """Return the model, trained by its client alone."""
        return fit_alone(self)


@with_keywords()
def fit(
    client: Client,
    start: Tensor,
    *,
    data: Samples | None = None,
    purpose: str = "train",
    epochs: int | None = None,
    steps: int | None = None,
    lr: float | None = None,
    loss: Loss | None = None,
    objective: Objective | None = None,
    proximal: float = 0.0,
    anchor: Tensor | None = None,
    only: Collection[str] | None = None,
    leaves: bool = True,
) -> Fitted:
    r"""Return a model trained on the client's data.

    It minimises :math:`\text{objective}(\text{loss}) + \tfrac{\mu}{2} \lVert w - a \rVert^2` by
    mini-batches; with SGD, :math:`w \leftarrow w - \eta\,(\nabla_w + \mu (w - a))`. What is not
    given is as the run's configuration says. `max_gradient_norm` is the limit of the whole
    gradient, of the proximal term too.

    Parameters
    ----------
    client
        Whose data, settings and random numbers to use.
    start
        The model to start from.
    data
        What to train on; the client's training data if None.
    purpose
        Names the stream that shuffles: equal purposes see the data in the same order.
    epochs, steps
        Passes over the data, or number of batches; at most one of the two.
    lr
        Learning rate.
    loss
        The loss on a batch; the run's if None.
    objective
        Makes more of the loss, by autograd.
    proximal, anchor
        μ and :math:`a` above (the start if None); the term's gradient is added as one operation.
    only
        Names of the parameters to train; the others stay as they are.
    leaves
        Whether the result, or anything that depends on it, may be sent. If not, `dp` ``records``
        has nothing to protect, and the training is plain.
    """
    asked = Fit(
        client,
        start,
        start if anchor is None else anchor,
        client.data.train if data is None else data,
        purpose,
        client.lr if lr is None else lr,
        epochs,
        steps,
        loss,
        objective,
        proximal,
        None if only is None else frozenset(only),
        leaves,
    )
    fitted: Fitted
    (fitted,) = client.find_out([asked])
    return fitted


def fit_each(
    client: Client, starts: Tensor, *, purpose: str = "train", epochs: int | None = None
) -> list[Fitted]:
    """Return a model trained from each start [m, P], all on the same batches; see `fit`."""
    asked = [Fit(client, row, row, client.data.train, purpose, client.lr, epochs) for row in starts]
    return client.find_out(asked)


def fit_alone(asked: Fit) -> Fitted:
    """Return the model that was asked for, trained by its client alone."""
    client, start, data, purpose = asked.client, asked.start, asked.data, asked.purpose
    epochs, steps, lr, loss = asked.epochs, asked.steps, asked.lr, asked.loss
    objective, proximal, only = asked.objective, asked.proximal, asked.only
    settings, workspace = client.config, client.workspace
    workspace.load(start)
    workspace.freeze_all_but(only)
    parameters = workspace.parameters
    received = workspace.layout.views(start)
    named = workspace.named_parameters()
    centre = workspace.layout.parameters(asked.anchor)
    trained = None if only is None else _mask(workspace, only)
    step = client.descent(parameters, lr, trained)
    total, n_batches = torch.zeros((), device=workspace.device), 0
    plain_sgd = settings.optimizer == "sgd" and not (
        settings.momentum or settings.weight_decay or settings.max_gradient_norm
    )
    privacy = asked.privacy
    batch_loss = client_loss(client) if loss is None else loss
    take = taking(client, data, purpose)

    def goal(value: Tensor, params: Params) -> Tensor:
        return objective(value, params, received) if objective else value

    def losses() -> Iterator[Tensor]:
        for chosen in batches(client, len(data), purpose, epochs=epochs, steps=steps):
            yield batch_loss(workspace.module, *take(chosen))

    def plain_steps() -> Iterator[Tensor]:
        for value in losses():
            workspace.descend(goal(value, named), lr)
            yield value.detach()

    def plain_gradients() -> Iterator[tuple[Tensor, Tensor]]:
        for value in losses():
            yield workspace.backward(goal(value, named)), value.detach()

    def steps_along(gradients: Iterator[tuple[Tensor, Tensor]]) -> Iterator[Tensor]:
        for gradient, value in gradients:
            with torch.no_grad():
                if proximal:
                    pull = parameters - centre
                    gradient.add_(pull if trained is None else pull * trained, alpha=proximal)
                step(gradient)
            yield value

    if privacy is not None and privacy.mode == "records":
        if loss is not None or data is not client.data.train:
            raise InvalidInputError(
                f"{settings.algorithm} cannot use --dp records: its loss is not that of single"
                " training samples, whose gradients could be clipped one by one"
            )
        n_steps = _private_steps(client, epochs, steps)
        taken = steps_along(
            _private_gradients(client, privacy, purpose, n_steps, goal if objective else None, only)
        )
    elif plain_sgd and not proximal:
        taken = plain_steps()
    else:
        taken = steps_along(plain_gradients())
    stopping = _stopping(asked)
    with training_mode(client, purpose):
        for value in taken:
            total += value
            n_batches += 1
            if stopping is not None and stopping.after(n_batches):
                break
    workspace.freeze_all_but(None)
    model = workspace.saved() if stopping is None else stopping.best
    return Fitted(model, float(to_host(total)) / max(n_batches, 1))


class _Stopping:
    """Keeps the model of the epoch with the lowest validation loss, and says when to stop.

    Parameters
    ----------
    client
        Who trains, with its model in the workspace.
    per_epoch
        Batches of an epoch.
    patience
        Epochs without a lower loss after which it is enough.
    """

    def __init__(self, client: Client, per_epoch: int, patience: int) -> None:
        self._client, self._per_epoch, self._patience = client, per_epoch, patience
        self._lowest, self._since = math.inf, 0
        self.best = client.workspace.saved()

    def after(self, n_batches: int) -> bool:
        """Tell whether to stop after so many batches."""
        if n_batches % self._per_epoch:
            return False
        workspace = self._client.workspace
        workspace.module.eval()
        loss = score_predictions(
            lambda inputs: predicted(workspace.module, inputs),
            self._client.data.validation,
            workspace.goal,
        ).loss
        workspace.module.train()
        self._since += 1
        if loss < self._lowest:
            self._lowest, self._since, self.best = loss, 0, workspace.saved()
        return self._since >= self._patience


def _stopping(asked: Fit) -> _Stopping | None:
    """Return what stops a training early: only if it goes by epochs of the client's own data."""
    client, patience = asked.client, asked.client.config.patience
    epochs = client.config.local_epochs if asked.epochs is None else asked.epochs
    own = asked.data is client.data.train and asked.steps is None
    n_samples, size = len(asked.data), client.config.batch_size
    if patience is None or not own or epochs < 2 or not n_samples:
        return None
    if not len(client.data.validation):  # of a node elsewhere; here, a run is refused before
        return None
    lone = client.workspace.has_batch_norm and n_samples > 1 and n_samples % size == 1
    return _Stopping(client, max(1, math.ceil(n_samples / size) - lone), patience)


@contextmanager
def training_mode(client: Client, purpose: str) -> Iterator[None]:
    """Compute as in training: with gradients, batch norm learning, and dropout.

    Dropout draws from the client's stream, and torch's own generator stays as it was.
    """
    workspace = client.workspace
    seed = seed_of_draws(client, purpose)
    with seeded_draws(seed, workspace.device), torch.enable_grad():
        workspace.module.train()
        yield


def seed_of_draws(client: Client, purpose: str) -> int:
    """Return the seed of what a network draws while it trains."""
    return seed_of(client.config.seed, "noise", client.index, client.round, purpose)


def batches(
    client: Client,
    n_samples: int,
    purpose: str,
    *,
    epochs: int | None = None,
    steps: int | None = None,
) -> Iterator[Tensor]:
    """Yield the indices of one batch after the other, shuffled anew for each pass.

    The last batch of a pass may be smaller. A last batch of one sample is left out if the network
    has batch norm, which cannot normalise it.
    """
    if epochs is not None and steps is not None:
        raise InvalidInputError("training lasts a number of epochs or of steps, not both")
    if epochs is None and steps is None:
        epochs = client.config.local_epochs
    stream, size = client.stream(purpose), client.config.batch_size
    lone = client.workspace.has_batch_norm and n_samples > 1
    done, passes = 0, 0
    while n_samples and (passes < epochs if epochs is not None else done < (steps or 0)):
        for batch in torch.split(torch.randperm(n_samples, generator=stream), size):
            if steps is not None and done == steps:
                return
            if not (lone and len(batch) == 1):
                done += 1
                yield batch
        passes += 1


def _private_steps(client: Client, epochs: int | None, steps: int | None) -> int:
    if steps is not None:
        return steps
    passes = client.config.local_epochs if epochs is None else epochs
    return passes * steps_of_pass(client.config, len(client.data.train))


def _private_gradients(
    client: Client,
    privacy: Privacy,
    purpose: str,
    n_steps: int,
    goal: LossOfOne | None,
    only: Collection[str] | None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the gradients of DP-SGD on Poisson samples, and enter the steps in the client's book.

    Each sample is in a batch with the same probability, whoever else is in it. Both streams are
    named by the steps that were before: no noise is ever used twice.
    """
    data, workspace = client.data.train, client.workspace
    before = client.memory.get(STEPS, 0)
    if not len(data):
        return
    rate = sampling_rate(client.config, len(data))
    client.memory |= {STEPS: before + n_steps, RATE: rate}
    sampling = client.stream(f"{purpose}: sample after {before}")
    take = taking(client, data, f"{purpose} after {before}")
    noising = client.stream(f"{purpose}: noise after {before}")
    for _ in range(n_steps):
        chosen = torch.rand(len(data), generator=sampling, dtype=torch.float64) < rate
        gradient, losses = private_gradient(
            workspace,
            *take(chosen.nonzero().flatten()),
            expected=rate * len(data),
            clip=privacy.clip,
            noise=privacy.noise,
            stream=noising,
            only=only,
            objective=goal,
        )
        yield gradient, gradient.new_tensor(losses / (rate * len(data)))


def gradient_at(
    client: Client,
    model: Tensor,
    *,
    data: Samples | None = None,
    loss: Loss | None = None,
    training: bool = False,
) -> Tensor:
    """Return the flat gradient of the mean loss over data, the client's training data if None.

    The network is in evaluation mode, so that the gradient is that of one fixed function; with
    `training` it is as in training, and dropout draws the same at every call of a round.
    """
    workspace, data = client.workspace, client.data.train if data is None else data
    workspace.load(model)
    workspace.module.eval()
    total = torch.zeros_like(workspace.gradient)
    batch_loss = client_loss(client) if loss is None else loss
    with training_mode(client, "gradient") if training else torch.enable_grad():
        for inputs, targets in data.chunks(EVALUATION_CHUNK):
            share = len(targets) / len(data)
            value = batch_loss(workspace.module, inputs, targets)
            total.add_(workspace.backward(value), alpha=share)
    return total


def mean_loss(losses: Sequence[Tensor]) -> float:
    """Return the mean of the losses of some batches; 0 if there are none."""
    return sum(to_host(torch.stack(list(losses))).tolist()) / len(losses) if losses else 0.0


def client_loss(client: Client) -> Loss:
    """Return the loss of a run for one client."""
    criterion = client.criterion

    def loss(module: nn.Module, inputs: Batch, targets: Tensor) -> Tensor:
        return criterion.mean(predicted(module, inputs), targets)

    return loss


def score_predictions(
    outputs_of: Callable[[Batch], Tensor],
    data: Samples,
    goal: Goal,
    metrics: Sequence[Metric] = (),
) -> Score:
    """Return how good a function from inputs to outputs is on samples with known targets."""
    tally = goal.tally(metrics)
    with torch.inference_mode():
        for inputs, targets in data.chunks(EVALUATION_CHUNK):
            tally.add(outputs_of(inputs), targets)
    return tally.score()


def score_model(
    workspace: Workspace, model: Tensor, data: Samples, metrics: Sequence[Metric] = ()
) -> Score:
    """Return how good a model is on samples with known targets."""
    workspace.load(model)
    workspace.module.eval()
    return score_predictions(
        lambda inputs: predicted(workspace.module, inputs), data, workspace.goal, metrics
    )


def _mask(workspace: Workspace, names: Collection[str]) -> Tensor:
    mask = torch.zeros_like(workspace.gradient)
    for name in names:
        mask[workspace.layout.columns[name]] = 1.0
    return mask
