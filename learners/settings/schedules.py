"""Settings written as short texts: attendance, optimisers, learning rates, augmentation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from coalitions.errors import InvalidInputError, did_you_mean, shown

if TYPE_CHECKING:
    from learners.settings.config import RunConfig

# ----------------------------------------------------------------------------------------
# Who takes part in a round and whose replies arrive, as it is written.

_KINDS = {
    "random": "random",
    "fixed": "fixed",
    "diurnal": "diurnal:PERIOD with 2 rounds or more",
    "dropout": "dropout:P with a probability above 0 and below 1",
    "deadline": "deadline:T with a positive number",
}


def attendance(text: str) -> tuple[str, float]:
    """Return the kind of attendance, and its number (0 if it has none).

    Examples
    --------
    >>> attendance("dropout:0.25"), attendance("fixed")
    (('dropout', 0.25), ('fixed', 0.0))
    """
    kind, colon, number = text.partition(":")
    if kind in ("random", "fixed") and not colon:
        return kind, 0.0
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    sound = {
        "diurnal": 2 <= value < math.inf and value.is_integer(),
        "dropout": 0 < value < 1,
        "deadline": 0 < value < math.inf,
    }
    if sound.get(kind):
        return kind, value
    hint = "" if kind in _KINDS else did_you_mean(kind, _KINDS)
    raise InvalidInputError(
        f"attendance is {shown(text)}; {hint}it can be: {', '.join(_KINDS.values())}"
    )


def check_attendance(config: RunConfig) -> None:
    """Refuse an attendance that is none, and one that chooses among everyone."""
    kind, _ = attendance(config.attendance)
    if kind in ("fixed", "diurnal") and config.participation == 1:
        raise InvalidInputError(
            f"attendance {kind} has no effect unless participation is below 1; it is 1"
        )


# ----------------------------------------------------------------------------------------
# How a client trains, as it is written: optimisers, learning rates over rounds, augmentation.

OPTIMIZERS = {
    "sgd": "SGD",
    "adam": "Adam",
    "adadelta": "Adadelta",
    "adagrad": "Adagrad",
    "adamax": "Adamax",
    "adamw": "AdamW",
    "asgd": "ASGD",
    "nadam": "NAdam",
    "radam": "RAdam",
    "rmsprop": "RMSprop",
    "rprop": "Rprop",
}
"""Optimisers and their classes in `torch.optim`; written out, so that torch need not be loaded."""

_AUGMENTATIONS = ("flip", "crop")

_REFUSED = {
    "lbfgs": "it computes the loss several times a step, by a closure that a batch has not",
    "sparseadam": "it wants sparse gradients, and those of networks here are dense",
    "adafactor": "it looks at the shape of each tensor, and a model here is one flat tensor",
    "muon": "it looks at the shape of each tensor, and a model here is one flat tensor",
}


def optimizer_named(text: str) -> str:
    """Return the name of an optimiser, however its letters are written.

    Examples
    --------
    >>> optimizer_named("AdamW")
    'adamw'
    """
    name = text.lower()
    if name in OPTIMIZERS:
        return name
    if name in _REFUSED:
        raise InvalidInputError(f"optimizer cannot be {text}: {_REFUSED[name]}")
    hint = did_you_mean(name, ("sgd", "adam")) or did_you_mean(name, OPTIMIZERS)
    raise InvalidInputError(
        f"setting 'optimizer' is {shown(text)}; {hint}it can be: {', '.join(OPTIMIZERS)}"
    )


def learning_rate(config: RunConfig, round: int) -> float:
    r"""Return the learning rate of a round; before the first, that of the first, after all, `lr`.

    In round t of a warm-up of W rounds it is :math:`\eta\, t / (W + 1)`. With s rounds since then,
    of the R − W there are: ``step:E:F`` is :math:`\eta F^{\lfloor s / E \rfloor}`, and ``cosine``
    is :math:`\tfrac{\eta}{2} (1 + \cos \pi s / (R - W))`.

    Examples
    --------
    >>> from learners.settings.config import RunConfig
    >>> config = RunConfig(lr=1.0, rounds=5, warmup=1, schedule="step:2:0.1")
    >>> [learning_rate(config, t) for t in (1, 2, 3, 4, 5)]
    [0.5, 1.0, 1.0, 0.1, 0.1]
    """
    t = max(round, 1)
    if t > config.rounds:
        return config.lr
    if t <= config.warmup:
        return config.lr * t / (config.warmup + 1)
    since = t - config.warmup - 1
    if config.schedule == "constant":
        return config.lr
    if config.schedule == "cosine":
        return config.lr * (1 + math.cos(math.pi * since / (config.rounds - config.warmup))) / 2
    every, factor = _steps(config.schedule)
    return config.lr * factor ** (since // every)


def augmentations(text: str | None) -> frozenset[str]:
    """Return what is done to pictures in training.

    Examples
    --------
    >>> sorted(augmentations("flip,crop")), augmentations(None)
    (['crop', 'flip'], frozenset())
    """
    names = [] if text is None else [each.strip() for each in text.split(",")]
    for name in names:
        if name not in _AUGMENTATIONS:
            raise InvalidInputError(
                f"augment is {shown(text)}; {did_you_mean(name, _AUGMENTATIONS)}it can be: flip,"
                " crop, or flip,crop"
            )
    return frozenset(names)


def check_descent(config: RunConfig) -> None:
    """Refuse a schedule or augmentation that is none, and what would never end or never begin."""
    augmentations(config.augment)
    if config.patience is not None and config.local_epochs < 2:
        raise InvalidInputError(
            "patience has no effect on 1 local epoch, which is the best of its round; it needs"
            " local_epochs of 2 or more"
        )
    if config.patience is not None and config.dp == "records" and config.clip is not None:
        raise InvalidInputError(
            "patience and --dp records do not go together: when a client stops tells of its"
            " validation data, which epsilon would not cover"
        )
    if config.schedule not in ("constant", "cosine"):
        _steps(config.schedule)
    if config.warmup >= config.rounds:
        raise InvalidInputError(
            f"warmup {config.warmup} leaves no round of {config.rounds} to train at the full"
            " learning rate; it must be fewer than rounds"
        )
    if config.weight_decay and config.optimizer == "rprop":
        raise InvalidInputError(
            "weight_decay has no effect on rprop, which has none in torch.optim"
        )


def _steps(text: str) -> tuple[int, float]:
    """Return after how many rounds the rate falls, and to which share."""
    kind, *numbers = text.split(":")
    try:
        every, factor = int(numbers[0]), float(numbers[1])
        if kind == "step" and len(numbers) == 2 and every >= 1 and 0 < factor < 1:
            return every, factor
    except (IndexError, ValueError):
        pass
    hint = "" if kind == "step" else did_you_mean(kind, ("constant", "cosine", "step"))
    raise InvalidInputError(
        f"schedule is {shown(text)}; {hint}it can be: constant, cosine, or step:EVERY:FACTOR with"
        " 1 round or more and a factor between 0 and 1, such as step:10:0.5"
    )
