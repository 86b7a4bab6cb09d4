"""The numbers an option can be, and how a range is put in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

LARGEST = 3.4e38
"""Largest number an option can be: networks compute with 32 bits."""

LARGEST_WHOLE = 2**63 - 1
"""Largest whole number an option can be, for generators of random numbers and arrays."""


@dataclass(frozen=True)
class Range:
    """The numbers an option can be.

    Examples
    --------
    >>> str(Range(least=1)), str(Range(above=0, most=1)), 2 in Range(above=0, most=1)
    ('1 or more', 'above 0 and at most 1', False)
    """

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
            and value == value  # not NaN
            # An infinite number is within no range that is closed to one side only.
            and (abs(value) < math.inf or self == Range())
        )

    def __str__(self) -> str:
        if self.most is None and self.below is None:
            if self.least is not None:
                return f"{self.least:g} or more"
            return "any number" if self.above is None else f"above {self.above:g}"
        if self.least is not None and self.most is not None:
            return f"from {self.least:g} to {self.most:g}"
        low = f"at least {self.least:g}" if self.least is not None else f"above {self.above:g}"
        high = f"at most {self.most:g}" if self.most is not None else f"below {self.below:g}"
        return f"{low} and {high}"
