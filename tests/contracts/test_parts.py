"""Every registered plug-in of the smaller kinds keeps what its kind promises."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import coalitions
import learners
import solvers
from cli.plugins.check_plugin import KINDS, resolved
from coalitions import Registry

ELSEWHERE = {"solver", "estimator", "algorithm"}
"""Kinds whose contracts have a file of their own."""


def plugins():
    """Give kind and name of everything registered, but data sets whose files are not here."""
    pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    for kind in KINDS.keys() - ELSEWHERE - {"engine", "data set"}:
        for name in resolved(KINDS[kind][0]):
            yield kind, name
    yield "data set", "digits"


def test_every_registry_has_checks():
    pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    checked = {id(resolved(registry)) for registry, _ in KINDS.values()}
    for package in (coalitions, solvers, learners):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith("learners.flower"):
                for thing in vars(importlib.import_module(module.name)).values():
                    assert not isinstance(thing, Registry) or id(thing) in checked, module.name


@pytest.mark.parametrize(("kind", "name"), sorted(plugins()))
def test_a_plug_in_keeps_its_promises(kind, name):
    for promise, fault_of in resolved(KINDS[kind][1])(name):
        assert fault_of() is None, promise
