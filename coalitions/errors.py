"""The exception tree of all four layers.

::

    CoalitionError                  anything this project raises on purpose
    ├── InvalidInputError           the data or an option is wrong; also a ValueError (exit code 2)
    │   ├── UnknownNameError        no solver, estimator, algorithm … of that name
    │   ├── UnknownKeywordError     no argument or option of that name; also a TypeError
    │   ├── MissingDependencyError  the name is known, but its package is not installed
    │   ├── RefusedError            what a structure or a proof claims is not so (exit code 1)
    │   └── DamagedFileError        a file that we wrote is not as we wrote it
    ├── BudgetError                 the budget is too small for what was asked (a ValueError)
    ├── InfeasibleError             no structure meets the demands (exit code 1)
    ├── NoSolutionError             a method ended without an answer that can be used (exit code 1)
    └── StorageError                the disk is full, read-only or failing (exit code 1)

A message is one sentence that says what came, what was expected and what to do.
"""

from __future__ import annotations

import functools
import reprlib
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from coalitions.formatting import plain

F = TypeVar("F", bound=Callable[..., Any])

PACKAGES = ("coalitions", "solvers", "learners", "cli")


class CoalitionError(Exception):
    """Base of every exception this project raises on purpose."""


class InvalidInputError(CoalitionError, ValueError):
    """The data or an option is wrong, and the message says what would be right."""


class UnknownNameError(InvalidInputError):
    """No implementation is registered under that name."""


class UnknownKeywordError(InvalidInputError, TypeError):
    """A function has no argument of that name."""


class MissingDependencyError(InvalidInputError, ImportError):
    """A known implementation needs a package that is not installed."""


class RefusedError(InvalidInputError):
    """A structure, a value or a proof was read and checked, and what it claims is not so."""


class DamagedFileError(InvalidInputError):
    """A file that we wrote is not as we wrote it."""


class BudgetError(CoalitionError, ValueError):
    """The budget is too small for the method that was asked for."""


class InfeasibleError(CoalitionError):
    """No structure meets all the demands; the message names them."""


class NoSolutionError(CoalitionError):
    """A method ended without an answer: time was over, or what it returned cannot be right."""


class StorageError(CoalitionError):
    """The disk is full, read-only or failing; the message names the file."""


class DamagedFileWarning(UserWarning):
    """A file is damaged, and another one was read in its place."""


class InputWarning(UserWarning):
    """Something in the input was left out or guessed, and the message says what."""


def warn_caller(message: str, kind: type[Warning] = InputWarning) -> None:
    """Warn of something at the line that called this project, however deep in it we are."""
    import warnings

    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, kind, stacklevel=level)


class _Short(reprlib.Repr):
    """repr of anything a file can hold: one short line, however long or deep the thing is."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxstring = self.maxother = self.maxlong = 60

    def repr_int(self, x: int, level: int) -> str:
        try:
            return super().repr_int(x, level)
        except ValueError:  # Python writes no more than 4300 digits
            return f"a whole number of about {x.bit_length() * 3 // 10} digits"


def shown(value: object) -> str:
    """Return a value as messages show it: one short line, whatever it is.

    Examples
    --------
    >>> shown("ann"), shown([[[[1]]]]), shown("x" * 1000)
    ("'ann'", '[[[...]]]', "'xxxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxxx'")
    """
    return _Short().repr(value)


def spoken(number: float) -> str:
    """Return the shortest text that reads back as the same number, whole numbers without .0.

    Examples
    --------
    >>> spoken(3.0), spoken(0.1 + 0.2), spoken(1e300)
    ('3', '0.30000000000000004', '1e+300')
    """
    whole = abs(number) < 1e15 and number == int(number)
    return str(int(number)) if whole else repr(float(number))


SYNONYMS = {
    "random_state": "seed",
    "rng": "seed",
    "timeout": "time_limit",
    "max_time": "time_limit",
    "n_samples": "budget",
    "n_clusters": "n_groups",
    "learning_rate": "lr",
    "epochs": "local_epochs",
    "n_clients": "clients",
    "n_rounds": "rounds",
    "n_jobs": "workers",
    "num_workers": "workers",
    "names": "labels",
    "labels": "names",
    "players": "names",
    "level": "confidence",
    "alpha": "confidence",
    "callback": "progress",
    "method": "kind",
    "initial": "warm_start",
}
"""What other libraries call our arguments."""


def unknown_keyword(
    what: str, name: str, known: Iterable[str], noun: str = "argument"
) -> UnknownKeywordError:
    """Return what is said about an argument, an option or a setting that does not exist.

    Examples
    --------
    >>> print(unknown_keyword("solve", "timeout", ["seed", "time_limit"]))
    solve has no argument 'timeout'; did you mean 'time_limit'? it takes seed, time_limit
    """
    names = list(known)
    meant = SYNONYMS.get(name)
    hint = f"did you mean {meant!r}? " if meant in names else did_you_mean(name, names)
    takes = f"it takes {', '.join(names)}" if names else "it takes none"
    return UnknownKeywordError(f"{what} has no {noun} {shown(name)}; {hint}{takes}")


def with_keywords(*more: str, **never: str) -> Callable[[F], F]:
    """Return a decorator that refuses unknown keywords in a sentence, with what was meant.

    Parameters
    ----------
    *more
        Keywords that the function takes by ``**``, beside those in its signature.
    **never
        Keywords of functions like it that mean nothing here, and why.

    Examples
    --------
    >>> @with_keywords()
    ... def double(number, *, seed=0):
    ...     return 2 * number
    >>> double(1, random_state=7)
    Traceback (most recent call last):
        ...
    coalitions.errors.UnknownKeywordError: double has no argument 'random_state'; did you mean \
'seed'? it takes number, seed
    """

    def decorate(function: F) -> F:
        code = function.__code__
        known = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *more}

        @functools.wraps(function)
        def checked(*arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 (those of the function)
            for name in keywords:
                if name in never:
                    raise UnknownKeywordError(f"{function.__name__} takes no {name}: {never[name]}")
                if name not in known:
                    raise unknown_keyword(function.__name__, name, sorted(known))
            return function(*arguments, **keywords)

        return checked  # type: ignore[return-value]

    return decorate


def did_you_mean(name: str, known: Iterable[object]) -> str:
    """Return "did you mean …? " with the known name closest to `name`, or nothing if none is.

    Examples
    --------
    >>> did_you_mean("gredy", ["greedy", "highs"])
    "did you mean 'greedy'? "
    >>> did_you_mean("jorg", ["Jörg", "Änne"])
    "did you mean 'Jörg'? "
    """
    import difflib

    texts = [str(each) for each in known]
    close = difflib.get_close_matches(plain(name), map(plain, texts), n=1)
    if not close:
        return ""
    same = [text for text in texts if plain(text) == close[0]]
    return f"did you mean {difflib.get_close_matches(name, same, n=1, cutoff=0.0)[0]!r}? "
