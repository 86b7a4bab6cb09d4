"""What a federated method is: the server's program of a round, and the client's half of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import torch

from coalitions.errors import InvalidInputError
from coalitions.registry import Registry
from learners.data.client_data import KINDS, Kind
from learners.rows.workspace import predicted
from learners.settings.config import RunConfig
from learners.settings.conversion import from_values
from learners.settings.options import check_options
from learners.task import TASKS, Message

if TYPE_CHECKING:
    from torch import Tensor

    from learners.client.client import Client
    from learners.data.client_data import Batch, FederatedData
    from learners.rows.parameters import Layout, Params
    from learners.server.federation import Federation

State: TypeAlias = Mapping[str, Any]
"""What the server remembers: tensors, numpy arrays and plain values, so that a checkpoint is it."""


@dataclass(frozen=True)
class Traits:
    """What a run must know of a method before any work is done.

    Attributes
    ----------
    asks
        Names of the tasks the method asks its clients for; once a round each, if they train. A
        private run holds a method to it: from the tasks' replies follows what ε is worth.
    averages
        Whether models meet in `Federation.combine`, so that `aggregation` has a say.
    kinds
        Kinds of targets that the method can learn.
    measures
        Names of the metrics that the method goes by; ``auto`` is the usual one.
    stops_early
        Whether clients train by epochs of their own data, so that `patience` has a say.
    validates
        Whether clients measure something on their validation data, and so must have some.
    """

    asks: tuple[str, ...] = ("train",)
    averages: bool = True
    kinds: tuple[Kind, ...] = KINDS
    measures: tuple[str, ...] = ()
    stops_early: bool = True
    validates: bool = False


@dataclass(frozen=True)
class Algorithm:
    r"""A federated method; without a change, it is federated averaging.

    A method states only what is different. Its options are dataclass fields, settable by name
    (``--set mu=0.1``); `option` gives them a range. It has two halves, which meet in
    `Federation.ask` alone:

    - the *server's*: `start`, `round`, `deployed`. They see what clients sent, never their data.
    - the *client's*: `objective`, `proximal`, `model`, `scores`, and any task of its own. They
      run where the data is, maybe in another process or on another machine.

    Federated averaging [McMahan2017]_, Algorithm 1: with :math:`n_i` training samples at client i,

    .. math:: w^{t+1} = \sum_i \frac{n_i}{\sum_j n_j} w_i^{t+1},

    Examples
    --------
    A complete method: the server goes only part of the way to the mean of its clients' models. In a
    module of yours, ``coalitions run --plugin MODULE --algorithm part-way --set share=0.9`` finds
    it.

    >>> from dataclasses import dataclass
    >>> import torch
    >>> from learners import ALGORITHMS, TASKS, Algorithm, option, run
    >>> @ALGORITHMS.register("part-way")
    ... @dataclass(frozen=True)
    ... class PartWay(Algorithm):
    ...     share: float = option(0.5, above=0, most=1, changes="models")
    ...
    ...     def round(self, federation, state, t):
    ...         messages = {c: {"model": state["model"]} for c in federation.present}
    ...         replies = federation.ask(TASKS["train"], messages)
    ...         models = torch.stack([reply["model"] for reply in replies.values()])
    ...         mean = models.mean(dim=0)
    ...         return {"model": state["model"].lerp(mean, self.share)}
    >>> settings = {"clients": 3, "rounds": 3, "partition": "iid", "workers": 1}
    >>> result = run(settings | {"algorithm": "part-way", "options": {"share": 0.9}})
    >>> result.metrics["mean_test_accuracy"] > 0.5
    True
    """

    relevance_is: ClassVar[str] = ""
    """What the method takes for relevance, if it records some; reports say it."""

    def __post_init__(self) -> None:
        names = (name for name in ALGORITHMS if ALGORITHMS[name] is type(self))
        check_options(self, f" of {next(names, type(self).__name__)}")

    def start(self, federation: Federation) -> State:
        """Return what the server remembers before the first round."""
        return {"model": federation.initial_model}

    def round(self, federation: Federation, state: State, t: int) -> State:
        """Return what the server remembers after round `t`; the first is 1.

        Here: the mean of the models that clients reply with to the first of the tasks in `traits`.
        """
        messages = {c: {"model": state["model"]} for c in federation.present}
        replies = federation.ask(TASKS[self.traits.asks[0]], messages)
        models = torch.stack([reply["model"] for reply in replies.values()])
        sizes = [float(reply["samples"]) for reply in replies.values()]
        return {**state, "model": federation.combine(models, models.new_tensor(sizes))}

    def deployed(self, federation: Federation, state: State) -> dict[str, dict[int, Message]]:
        """Return what every client needs to use its model now, by kind of model.

        The first kind is the one results report. A message names the model (`model`), or is empty
        if the client has it in its memory. Nothing here is counted as traffic: it is how a run is
        measured, not part of the method.
        """
        return {"global": {c: {"model": state["model"]} for c in federation.clients}}

    def newcomers(
        self, federation: Federation, state: State, clients: list[int]
    ) -> dict[int, Message]:
        """Train the global model for the local epochs.

        A method says here what clients get that were held out of training; the first line stands
        in `result.json`. Training is over, and the rounds go on counting. Ask with `measuring`:
        what newcomers cost is not part of the run's traffic. The members, `federation.clients`,
        can be asked, too, but nothing they have may change.

        Returns
        -------
        dict
            What each newcomer needs to use its model, as from `deployed`.
        """
        sent = {"model": state["model"], "keep": True, "send": False}
        answered = federation.ask(TASKS["train"], dict.fromkeys(clients, sent), measuring=True)
        return {c: {} for c in answered}

    def check_newcomers(self, state: State) -> None:
        """Raise `InvalidInputError` if the method has nothing for newcomers, given its start."""
        if type(self).newcomers is Algorithm.newcomers and "model" not in state:
            raise InvalidInputError(
                f"{self.name} has no model for new clients: its state has no 'model', and it has no"
                " method `newcomers`"
            )

    def objective(self, loss: Tensor, params: Params, received: Params) -> Tensor:
        """Return what a client minimises, given the loss of a batch.

        `params` are the client's parameters as autograd knows them, `received` those it started
        from. A method that does not override this costs nothing.
        """
        return loss

    @property
    def proximal(self) -> float:
        r"""The μ of the term :math:`\tfrac{\mu}{2} \lVert w - w^t \rVert^2` a client adds."""
        return 0.0

    @property
    def traits(self) -> Traits:
        """What a run must know of the method, as its options are."""
        return Traits()

    def passes(self, local_epochs: int) -> int:
        """Return how many times a client goes through its data in a round, to plan σ for an ε."""
        return local_epochs

    def most_traffic(
        self, layout: Layout, n_present: int, n_classes: int
    ) -> tuple[int, int] | None:
        """Return the most parameters that a client sends up and gets down in a round.

        None if it is the same in every round from the second on and whatever clients learn, so
        that a rehearsal tells it exactly.
        """
        return None

    def check(self, config: RunConfig, layout: Layout) -> None:
        """Raise `InvalidInputError` if the method cannot do what it is asked of this network."""

    def check_data(self, data: FederatedData) -> None:
        """Raise `InvalidInputError` if the method cannot learn what these data are about."""
        if data.targets.kind not in self.traits.kinds:
            raise InvalidInputError(
                f"{self.name} is for {' and '.join(self.traits.kinds)}; the task of {data.name} is"
                f" {data.targets.kind}"
            )

    @property
    def name(self) -> str:
        """What the method is registered as."""
        return next((n for n in ALGORITHMS.names() if ALGORITHMS[n] is type(self)), "this method")

    def privacy_objection(self, dp: Literal["updates", "records"]) -> str | None:
        """Return why ε would be false in a mode, for a reason tasks do not declare; None if not."""
        return None

    def model(self, client: Client, message: Message) -> Tensor:
        """Return the row a client uses for its predictions: what it was sent, else its own."""
        row: Tensor = message.get("model", client.own_model)
        return row

    def scores(self, client: Client, message: Message, inputs: Batch) -> Tensor:
        """Return what a client's model gives for inputs: scores [N, classes], or other outputs.

        The model of `model` is in the client's workspace already. Of scores, the highest is the
        prediction.
        """
        return predicted(client.workspace.module, inputs)

    def options(self) -> dict[str, Any]:
        """Return the method's own options as they are now."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def personal_and_global(
    federation: Federation, state: State, personal: Message
) -> dict[str, dict[int, Message]]:
    """Return what `deployed` does if clients have models of their own beside the global one.

    Parameters
    ----------
    federation, state
        As for `Algorithm.deployed`.
    personal
        What every client needs for its own model; nothing if that is in its memory.
    """
    shared = {"model": state["model"]}
    return {
        "personal": dict.fromkeys(federation.clients, personal),
        "global": dict.fromkeys(federation.clients, shared),
    }


class _Methods(Registry[type[Algorithm]]):
    """The methods; none has an option that is called as a setting of all runs is."""

    def register(self, name: str) -> Callable[[type[Algorithm]], type[Algorithm]]:
        """Return a decorator that files a method under `name`."""
        enter = super().register(name)

        def checked(method: type[Algorithm]) -> type[Algorithm]:
            described = sorted({each.name for each in fields(Traits)} & vars(method).keys())
            if described:
                raise InvalidInputError(
                    f"the algorithm {name!r} defines {described[0]!r}; that is a field of what its"
                    " property `traits` returns"
                )
            settings = {each.name for each in fields(RunConfig)}
            for each in fields(method) if is_dataclass(method) else ():
                if each.name in settings:
                    raise InvalidInputError(
                        f"the algorithm {name!r} has an option {each.name!r}, which is a setting of"
                        " every run; give the option another name"
                    )
            return enter(method)

        return checked


ALGORITHMS = _Methods("algorithm", "learners.algorithms")


def build_algorithm(name: str, options: Mapping[str, Any]) -> Algorithm:
    """Return the method called `name` with its options; an unknown option is an error."""
    return from_values(ALGORITHMS[name], options, f"option of {name}")


def algorithm_of(config: RunConfig) -> Algorithm:
    """Return the method of a run; a setting it could only ignore is an error."""
    algorithm = build_algorithm(config.algorithm, config.options)
    if config.aggregation != "mean" and not algorithm.traits.averages:
        raise InvalidInputError(
            f"{config.algorithm} does not average models, so the aggregation"
            f" {config.aggregation!r} has nothing to decide"
        )
    if config.patience is not None and not algorithm.traits.stops_early:
        raise InvalidInputError(
            f"{config.algorithm} does not train a client's model by epochs of its data, so patience"
            " has nothing to stop"
        )
    return algorithm
