"""Your clients, your tensors, your network: nothing to register.

Six clinics in two regions measure the same four things, but what they mean differs by region.
"""

import torch
from torch import nn

from learners import run

stream = torch.Generator().manual_seed(0)
north, south = torch.randn(2, 4, generator=stream)


def clinic(meaning: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    measured = torch.randn(n, 4, generator=stream)
    return measured, (measured @ meaning + 0.3 * torch.randn(n, generator=stream) > 0).long()


data = {
    f"{region} {number}": (clinic(meaning, 60), clinic(meaning, 200))
    for region, meaning in (("north", north), ("south", south))
    for number in (1, 2, 3)
}


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, measured: torch.Tensor) -> torch.Tensor:
        return self.layers(measured)


for method in ("local", "fedavg", "cffl"):
    result = run({"algorithm": method, "rounds": 5}, data=data, model=Small, metrics=["auroc"])
    auroc = result.metrics["metrics"]["auroc"]
    print(f"{method:7} mean AUROC {auroc['mean']:.3f}, worst clinic {auroc['worst_decile']:.3f}")
