"""What networks of sequences share: tokens or numbers, step by step, as vectors."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from coalitions.errors import InvalidInputError
from learners.data.contents import Input, described


class Steps(nn.Module):
    """A sequence as vectors [N, T, width]: tokens by their embeddings, numbers as they are.

    Parameters
    ----------
    inputs
        The one input: codes of shape (T,), or numbers of shape (T,) or (T, numbers of a step).
    embedding
        Length of a token's vector.

    Attributes
    ----------
    length, width
        Number of steps, and length of the vector of each.
    """

    def __init__(self, inputs: Mapping[str, Input], embedding: int) -> None:
        super().__init__()
        kinds = list(inputs.values())
        if len(kinds) != 1 or not 1 <= len(kinds[0].shape) <= (1 if kinds[0].codes else 2):
            raise InvalidInputError(
                "a network of sequences takes one input, tokens [N, T] or numbers [N, T, F], not"
                f" {described(inputs)}"
            )
        (only,) = kinds
        self.length = only.shape[0]
        self.embedding = nn.Embedding(max(only.codes), embedding) if only.codes else None
        self.width = embedding if only.codes else (*only.shape, 1)[1]

    def forward(self, sequence: Tensor) -> Tensor:
        """Return the vectors of a batch of sequences."""
        if self.embedding is not None:
            vectors: Tensor = self.embedding(sequence)
            return vectors
        return sequence if sequence.dim() == 3 else sequence[..., None]
