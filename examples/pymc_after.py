"""Did the cold break the seals? pymc_before.py, changed for modelodds."""

import numpy as np
import pymc as pm

from modelodds import adapters, compare

# Launches of the space shuttle before the Challenger's last: degrees Fahrenheit; did an O-ring fail?
warmth = np.array(
    [66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58]
)
failed = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1])
temperature = (warmth - warmth.mean()) / warmth.std()

with pm.Model() as by_chance:
    intercept = pm.Normal("intercept", 0, 2)
    pm.Bernoulli("failed", logit_p=intercept, observed=failed)

with pm.Model() as by_cold:
    intercept = pm.Normal("intercept", 0, 2)
    slope = pm.Normal("slope", 0, 2)
    pm.Bernoulli("failed", logit_p=intercept + slope * temperature, observed=failed)

chance = adapters.from_pymc(by_chance, "chance")
cold = adapters.from_pymc(by_cold, "cold")
print(compare([chance, cold]))
