"""How much memory tensors take while something is computed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the memory of tensors that are made inside, as long as anyone has them.

    What kernels take and give back within an operation is not seen.

    Attributes
    ----------
    peak
        The most bytes at any time.

    Examples
    --------
    >>> import torch
    >>> with LiveMemory() as seen:
    ...     for _ in range(3):
    ...         twice = torch.ones(100) * 2
    >>> seen.peak
    1200
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self._now = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        older = [each.untyped_storage() for each in _tensors((args, kwargs))]
        given = function(*args, **(kwargs or {}))
        for each in _tensors(given):
            storage = each.untyped_storage()
            if storage in self._known or any(storage is other for other in older):
                continue
            self._known.add(storage)
            self._now += storage.nbytes()
            weakref.finalize(storage, self._gone, storage.nbytes())
        self.peak = max(self.peak, self._now)
        return given

    def _gone(self, size: int) -> None:
        self._now -= size


def _tensors(values: object) -> list[Tensor]:
    return [each for each in tree_leaves(values) if isinstance(each, Tensor)]
