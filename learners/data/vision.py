"""torchvision, made importable; the only module that imports it.

A torchvision whose compiled operators do not match the installed torch (a CPU torch beside a
torchvision built for another one) stops at import with ``operator torchvision::nms does not
exist``. Data sets, transforms and classification networks need no such operator, so it is enough
to declare the two names that are looked up during the import.
"""

from __future__ import annotations

import importlib
from types import ModuleType

import torch

from coalitions.errors import MissingDependencyError

_LOOKED_UP_AT_IMPORT = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}

_declarations: list[torch.library.Library] = []  # torch forgets a declaration with its library


def torchvision_module(name: str) -> ModuleType:
    """Return ``torchvision.NAME`` (``models``, ``datasets`` …), imported now.

    Examples
    --------
    >>> torchvision_module("models").resnet34.__name__
    'resnet34'
    """
    full_name = f"torchvision.{name}"
    try:
        return importlib.import_module(full_name)
    except ImportError as error:
        raise MissingDependencyError(f"this needs: pip install torchvision ({error})") from None
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
    _declare_missing_operators()
    return importlib.import_module(full_name)


def _declare_missing_operators() -> None:
    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for operator, signature in _LOOKED_UP_AT_IMPORT.items():
        if not hasattr(torch.ops.torchvision, operator):
            library.define(signature)  # type: ignore[no-untyped-call]
    _declarations.append(library)
