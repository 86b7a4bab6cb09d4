"""The exception tree of all four layers.

::

    CoalitionError                  anything this project raises on purpose
    ├── InvalidInputError           the data or an option is wrong; also a ValueError (exit code 2)
    │   ├── UnknownNameError        no solver, estimator, algorithm … of that name
    │   └── MissingDependencyError  the name is known, but its package is not installed
    ├── BudgetError                 the budget is too small for what was asked (a ValueError)
    ├── InfeasibleError             no structure meets the demands (exit code 1)
    └── NoSolutionError             a method ended without an answer that can be used (exit code 1)

A message is one sentence that says what came, what was expected and what to do.
"""

from __future__ import annotations


class CoalitionError(Exception):
    """Base of every exception this project raises on purpose."""


class InvalidInputError(CoalitionError, ValueError):
    """The data or an option is wrong, and the message says what would be right."""


class UnknownNameError(InvalidInputError):
    """No implementation is registered under that name."""


class MissingDependencyError(InvalidInputError):
    """A known implementation needs a package that is not installed."""


class BudgetError(CoalitionError, ValueError):
    """The budget is too small for the method that was asked for."""


class InfeasibleError(CoalitionError):
    """No structure meets all the demands; the message names them."""


class NoSolutionError(CoalitionError):
    """A method ended without an answer: time was over, or what it returned cannot be right."""
