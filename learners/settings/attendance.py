"""Who takes part in a round and whose replies arrive, as it is written."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from coalitions.errors import InvalidInputError, did_you_mean, shown

if TYPE_CHECKING:
    from learners.settings.config import RunConfig

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
