"""The federated methods there are, for commands that only tell about them."""

from __future__ import annotations

from collections.abc import Sequence

from coalitions.registry import installed_plugins


def known_methods(plugins: Sequence[str] | None) -> dict[str, type]:
    """Return the methods by name; where no plug-in may bring more, without loading torch.

    Parameters
    ----------
    plugins
        Modules that the user named.
    """
    if plugins or installed_plugins():
        from learners.algorithm import ALGORITHMS

        return {name: ALGORITHMS[name] for name in ALGORITHMS}
    from learners.settings.declared import declared_methods

    return dict(declared_methods())
