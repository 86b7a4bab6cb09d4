"""What the base installation leaves out, and the command that brings it."""

from __future__ import annotations

_PACKAGES = {
    "ilp": ("pulp", "ortools", "highspy"),
    "report": ("matplotlib", "plotly"),
    "learners": ("torch", "torchvision", "safetensors", "opacus", "skimage", "PIL"),
    "sklearn": ("sklearn",),
    "tables": ("pandas", "openpyxl", "pyarrow"),
    "flower": ("flwr", "ray"),
}


def install_command(module: str) -> str | None:
    """Return how to install the extra that `module` belongs to; None if it belongs to none.

    Examples
    --------
    >>> install_command("highspy")
    "pip install 'coalition-kit[ilp]'"
    """
    package = module.split(".")[0]
    for extra, packages in _PACKAGES.items():
        if package in packages:
            return f"pip install 'coalition-kit[{extra}]'"
    return None


def needed(module: str) -> None:
    """Raise in one sentence, with the command, if a package is not installed.

    Raises
    ------
    MissingDependencyError
        It is not.
    """
    from importlib.util import find_spec

    from coalitions.errors import MissingDependencyError

    try:
        there = find_spec(module) is not None
    except (ImportError, ValueError):  # what stands for a module and is none
        there = False
    if not there:
        raise MissingDependencyError(
            f"this needs {module}, which is not installed:"
            f" {install_command(module) or f'pip install {module}'}"
        )
