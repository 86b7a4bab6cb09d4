"""Five people, some of whom work well together: who should team up?"""

from coalitions import SynergyGraph
from solvers import solve

people = ["ann", "bob", "cleo", "dan", "eve"]
graph = SynergyGraph(
    [
        [0, 4, 1, -3, -1],
        [4, 0, 2, -2, -1],
        [1, 2, 0, 1, -2],
        [-3, -2, 1, 0, 3],
        [-1, -1, -2, 3, 0],
    ],
    labels=people,
)

solution = solve(graph)
for block in solution.structure:
    print("team:", ", ".join(people[player] for player in block))
print(f"worth {solution.value:g}, and at most {solution.bound:g} is possible")

# What if ann and dan are told to work together, or no team may have more than two?
together = solve(graph, must_link=[(0, 3)])
print(f"with ann and dan together: worth {together.value:g}")
pairs = solve(graph, max_size=2)
print(f"in pairs: {[[people[p] for p in block] for block in pairs.structure]}, {pairs.value:g}")
