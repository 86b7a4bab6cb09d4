"""A client that comes when training is over: what does each method have for it?"""

from learners import run

# Two groups of three clients with the same digits, and a seventh, held out, like the first three.
groups = "/".join(["1,3,8,9"] * 3 + ["0,2,5,6"] * 3 + ["1,3,8,9"])
settings = {"dataset": "digits", "clients": 7, "new_clients": 1, "partition": f"labels:{groups}"}
settings |= {"train_size": 60, "rounds": 6, "workers": 1}

for algorithm in ("local", "fedavg", "ifca", "cffl", "pfedsv"):
    result = run(settings | {"algorithm": algorithm})
    newcomer = result.new_clients
    print(
        f"{algorithm:<8} members {result.mean_test_accuracy:.3f}"
        f"   newcomer {newcomer['mean_test_accuracy']:.3f}   {newcomer['how']}"
    )

network = result.model(6)  # the newcomer's own, ready to predict
print("the newcomer has a", type(network).__name__)
