"""The runs that are kept: which of them has given settings, whatever version made its folder."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import MISSING, fields, replace
from glob import escape
from pathlib import Path
from typing import Any

from coalitions.errors import CoalitionError
from learners.algorithm import ALGORITHMS
from learners.settings.config import NO_EFFECT, RunConfig, plain_settings


def kept_place(home: Path, config: RunConfig) -> Path:
    """Return the folder for runs of these settings: it has a folder for each seed.

    1. The folder is named by the settings that are not at their defaults. If the complete settings
       of the runs in it are these, it is the one.
    2. If not, every folder of this method and data set is read: earlier versions named folders by
       all settings, and defaults may have changed.
    3. If no folder has these settings, the runs are new, and the name is one that is free.

    Parameters
    ----------
    home
        The folder of all runs; it need not exist.
    config
        Complete settings, as `learners.runs.run.completed` returns them, of any seed.
    """
    wanted = _counted(config)
    name = f"{config.algorithm}-{config.dataset}"
    own = home / f"{name}-{settings_digest(config)}"
    if _settings_in(own) == wanted:
        return own
    for place in sorted(home.glob(f"{escape(name)}-*")):
        with suppress(CoalitionError):  # a damaged folder of other settings is not our concern
            if _settings_in(place) == wanted:
                return place
    return next(place for place in _numbered(own) if _settings_in(place) is None)


def settings_digest(config: RunConfig) -> str:
    """Return ten characters that runs have in common if they differ in their seed alone.

    Settings at their defaults do not count, so a setting that is added later changes no digest. The
    number of rounds between tests counts, because some figures are curves.

    Examples
    --------
    >>> few, many = RunConfig(workers=1), RunConfig(workers=4, seed=7)
    >>> settings_digest(few) == settings_digest(many) != settings_digest(RunConfig(rounds=9))
    True
    """
    defaults = plain_settings(type(config)(options=_default_options(config.algorithm)))
    given = _counted(config)
    differing = {
        key: given.get(key)
        for key in sorted({*given, *defaults} - _NOT_COUNTED)
        if given.get(key) != defaults.get(key)
    }
    return hashlib.sha256(json.dumps(differing).encode()).hexdigest()[:10]


def with_all_options(config: RunConfig) -> RunConfig:
    """Return a configuration with every option of its method; those not given have their defaults.

    A folder does not mention options that were added to the method after it was made. (Those that
    are None are never mentioned.)
    """
    return replace(config, options={**_default_options(config.algorithm), **config.options})


_NOT_COUNTED = {"seed", *NO_EFFECT} - {"evaluate_every"}


def _counted(config: RunConfig) -> dict[str, Any]:
    """Return the settings that decide whether two runs belong to the same folder."""
    settings = plain_settings(with_all_options(config))
    return {key: value for key, value in settings.items() if key not in _NOT_COUNTED}


def _default_options(algorithm: str) -> dict[str, Any]:
    if algorithm not in ALGORITHMS:  # it is in a plug-in that is not imported yet
        return {}
    defaults = {option.name: option.default for option in fields(ALGORITHMS[algorithm])}
    return {name: value for name, value in defaults.items() if value not in (MISSING, None)}


def _settings_in(place: Path) -> dict[str, Any] | None:
    """Return the settings of the runs in a folder; None if no run has begun there."""
    for path in sorted(place.glob("*/config.toml")):
        return _counted(RunConfig.read(path))
    return None


def _numbered(place: Path) -> Iterator[Path]:
    yield place
    for number in itertools.count(2):
        yield place.with_name(f"{place.name}-{number}")
