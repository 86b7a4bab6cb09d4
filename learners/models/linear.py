"""One linear layer: logistic regression, or linear regression."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from learners.data.contents import Input, Targets
from learners.models.network import MODELS, Network
from learners.models.tabular import Columns


@MODELS.register("linear")
class LinearModel(Network):
    """One linear layer on numbers and embeddings of codes: for few rows of a table."""

    def __init__(self, inputs: Mapping[str, Input], n_outputs: int) -> None:
        columns = Columns(inputs)
        super().__init__(
            features=columns, hidden=nn.Identity(), head=nn.Linear(columns.width, n_outputs)
        )

    @classmethod
    def for_data(cls, inputs: Mapping[str, Input], targets: Targets) -> LinearModel:
        """Return the network for some data."""
        return cls(inputs, targets.n_outputs)
