"""Four towns share a water pipe: what each should pay, and who would rather build alone."""

from coalitions import (
    AirportGame,
    FunctionGame,
    banzhaf,
    core_membership,
    least_core,
    nucleolus,
    shapley,
    verify_nucleolus,
)

# The pipe passes the towns one after the other; a coalition pays for its farthest member, as
# airlines do for their longest runway. Costs are negative values.
towns = ["near", "hill", "mill", "far"]
cost = AirportGame([3.0, 7.0, 8.0, 20.0])
pipe = FunctionGame(lambda coalitions: -cost(coalitions), len(towns))

fair = nucleolus(pipe)
print("town   shapley  banzhaf  nucleolus")
for k, town in enumerate(towns):
    print(
        f"{town:5}{-shapley(pipe).values[k]:9.2f}{-banzhaf(pipe).values[k]:9.2f}"
        f"{-fair.payoff[k]:11.2f}"
    )
print("the nucleolus is", "proven" if verify_nucleolus(pipe, fair).holds else "wrong")

equal = core_membership(pipe, [-5.0] * 4)
print(f"equal shares: {[towns[k] for k in equal.blocking]} would save {equal.excess:g} alone")
print(f"least core: everybody can save at least {-least_core(pipe).epsilon:g}")
