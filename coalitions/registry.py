"""Implementations by name: a new file in the right folder is found by itself."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from coalitions.errors import InvalidInputError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

T = TypeVar("T")

PLUGINS = "coalitions.plugins"
"""Group of entry points by which an installed package brings implementations of its own."""

Checks = Iterator[tuple[str, Callable[[], str | None]]]
"""What an implementation promises, each with a function that returns None if the promise is kept,
and a sentence if not. `coalitions check-plugin` and the contract tests go through them."""


class Registry(Generic[T]):
    """A table from names to implementations of one kind.

    The modules of `places` are imported on the first look-up, never before: an implementation
    registers itself by the decorator, so there is no list to edit and no line to forget.

    Parameters
    ----------
    kind
        What is registered, in the singular; used in messages.
    places
        Packages whose modules hold the implementations, or single modules. Modules whose names
        start with an underscore hold what implementations share and are not imported.

    Examples
    --------
    >>> greetings = Registry[str]("greeting")
    >>> greetings.register("hello")("Hello!")
    'Hello!'
    >>> greetings["hello"]
    'Hello!'
    """

    def __init__(self, kind: str, *places: str) -> None:
        self.kind = kind
        self._places = places
        self._entries: dict[str, T] = {}
        self._loaded = False

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that files its argument under `name`."""

        def enter(implementation: T) -> T:
            known = self._entries.get(name)
            if known is not None and not _same_source(known, implementation):
                raise InvalidInputError(
                    f"a {self.kind} named {name!r} is registered already; choose another name"
                )
            self._entries[name] = implementation
            return implementation

        return enter

    def names(self) -> list[str]:
        """Return all registered names in alphabetical order."""
        self._load()
        return sorted(self._entries)

    def __getitem__(self, name: str) -> T:
        self._load()
        try:
            return self._entries[name]
        except KeyError:
            raise unknown_name(self.kind, name, self._entries) from None

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __repr__(self) -> str:
        return f"Registry({self.kind!r}: {', '.join(self.names())})"

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True  # first, because the modules may look a name up while they are imported
        try:
            _load_plugins()
            for place in self._places:
                package = importlib.import_module(place)
                for module in pkgutil.iter_modules(getattr(package, "__path__", ())):
                    if not module.name.startswith("_"):
                        importlib.import_module(f"{place}.{module.name}")
        except BaseException:
            self._loaded = False
            raise


@dataclass(frozen=True)
class Declaration:
    """What the source says that is registered under a name. A file is parsed when it is asked for.

    Attributes
    ----------
    registry, name
        What it is registered in, and as what.
    file
        The file in which it stands.
    """

    registry: str
    name: str
    file: Path

    @property
    def module(self) -> ast.Module:
        """The whole file."""
        return _parsed(self.file)

    @property
    def definition(self) -> ast.ClassDef | ast.FunctionDef:
        """The class or the function below the decorator."""
        call = f"{self.registry}.register({self.name!r}"
        for node in self.module.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                for decorator in node.decorator_list:
                    if ast.unparse(decorator).startswith((f"{call})", f"{call},")):
                        return node
        raise UnknownNameError(f"nothing is registered as {self.name!r} in {self.file}")


def declared(registry: str, place: str) -> dict[str, Declaration]:
    """Return what the files of a package register, by name: they are read, not imported.

    To list names, to complete them and to refuse a misspelt one, numpy and torch are not loaded.
    What plug-ins register is not among them.

    Parameters
    ----------
    registry
        The registry's name in the source, such as ``SOLVERS``.
    place
        A package, or a single module.

    Examples
    --------
    >>> list(declared("DATA_MODELS", "coalitions.data_models"))
    ['forest', 'linear', 'nearest', 'tree']
    """
    # The help of many commands lists names; a pattern finds them much faster than a parser.
    decorator = re.compile(rf'^@{registry}\.register\(\s*"([^"]+)"', re.MULTILINE)
    found = {
        name: Declaration(registry, name, file)
        for file, text in _sources(place)
        for name in decorator.findall(text)
    }
    return dict(sorted(found.items()))


@cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _sources(place: str) -> tuple[tuple[Path, str], ...]:
    """Return the files of a package and what is in them; several registries share a package."""
    spec = importlib.util.find_spec(place)
    assert spec is not None
    files: list[Path] = []
    if spec.submodule_search_locations is None:
        assert spec.origin is not None
        files.append(Path(spec.origin))
    for folder in spec.submodule_search_locations or ():
        files += Path(folder).rglob("*.py")
    return tuple((file, file.read_text(encoding="utf-8")) for file in files)


def unknown_name(kind: str, name: str, names: Collection[str]) -> UnknownNameError:
    """Return what is said about a name that nobody registered."""
    return UnknownNameError(
        f"there is no {kind} named {name!r}; {did_you_mean(name, names)}"
        f"there are: {', '.join(sorted(names))}"
    )


def installed_plugins() -> EntryPoints:
    """Return the entry points of `PLUGINS` that installed packages have."""
    from importlib.metadata import entry_points  # slow to import

    return entry_points(group=PLUGINS)


@cache
def _load_plugins() -> None:
    """Import the modules that installed packages name as entry points of `PLUGINS`."""
    for point in installed_plugins():
        try:
            point.load()
        except Exception as error:
            name = point.dist.name if point.dist is not None else point.name
            raise InvalidInputError(
                f"the plug-in {point.value!r} of the package {name} cannot be imported"
                f" ({type(error).__name__}: {error}); mend it, or pip uninstall {name}"
            ) from error


def _same_source(one: object, other: object) -> bool:
    """Tell whether two objects come from the same definition (a module imported anew)."""

    def source(thing: object) -> tuple[object, object]:
        return getattr(thing, "__module__", None), getattr(thing, "__qualname__", thing)

    return source(one) == source(other)
