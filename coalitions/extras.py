"""What the base installation leaves out, and the command that brings it."""

from __future__ import annotations

from pathlib import Path

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

    The package is on no index: it is installed from a clone.

    Examples
    --------
    >>> install_command("highspy").split(" in ")[0]
    "pip install '.[ilp]'"
    """
    package = module.split(".")[0]
    for extra, packages in _PACKAGES.items():
        if package in packages:
            return f"pip install '.[{extra}]'{_where()}"
    return None


def _where() -> str:
    """Return where to type the command, if that is not the working folder."""
    clone = _clone()
    if clone is None:
        return " in the clone of coalition-kit"
    return "" if Path.cwd() == clone else f" in {clone}"


def _clone() -> Path | None:
    """Return the folder that the package runs in, or was installed from, if it is still there."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    here = Path(__file__).resolve().parents[1]
    if (here / "pyproject.toml").is_file():
        return here
    try:
        origin = json.loads(distribution("coalition-kit").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return None
    url = urlsplit(origin.get("url", ""))
    there = Path(url2pathname(url.path))
    found = url.scheme == "file" and (there / "pyproject.toml").is_file()
    return there if found else None


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
