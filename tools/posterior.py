"""Approximate Bayesian computation from a table of simulated draws, by importance weights: priors, likelihoods of printed numbers, posteriors, calibration.

A draw is a point of the unit cube, one coordinate a parameter; the prior is uniform there. A datum is the interval in which a paper's own number lies, and that number
is the simulated one plus normal noise. So the likelihood of a datum is a difference of two normal distribution functions, and the weight of a draw its product over all
data, divided by the density that the draw was proposed with. No library: pyabc and sbi bring a database or a neural network for what is a page of numpy here, and the
same table serves every posterior that leaves a claim's own data out.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr


@dataclass(frozen=True)
class Parameter:
    """An open parameter: its prior maps [0, 1) to values."""

    name: str
    says: str
    law: str = "choice"
    low: float = 0.0
    high: float = 1.0
    choices: tuple = ()
    unit: str = ""

    def value(self, u):
        """The value at the quantile u, with four digits, and of durations in whole nanoseconds, so that it can be written on a command line."""
        if self.choices:
            return self.choices[min(int(u * len(self.choices)), len(self.choices) - 1)]
        if self.law == "log-uniform":
            number = self.low * (self.high / self.low) ** u
        else:
            number = self.low + (self.high - self.low) * u
        number = float(f"{number:.4g}")
        return round(number, 6) if self.unit == "ms" else number


@dataclass(frozen=True)
class Datum:
    """A printed number: the interval in which it lies, and the noise between it and ours."""

    id: str
    claim: str
    section: str
    says: str
    of: str
    sigma: float
    low: float = -math.inf
    high: float = math.inf
    missing: float = 0.0

    def likelihood(self, ours):
        """The probability that the paper's number lies in the interval, for each of our numbers; NaN is a saturated system."""
        ours = np.asarray(ours, dtype=float)
        probability = ndtr((self.high - ours) / self.sigma) - ndtr((self.low - ours) / self.sigma)
        return np.where(np.isnan(ours), self.missing, probability)


def weights(data, values, density):
    """Normalised weights of draws with these `values` (by the id of a datum) that were proposed with this density."""
    logs = -np.log(density)
    with np.errstate(divide="ignore"):
        for datum in data:
            logs = logs + np.log(datum.likelihood(values[datum.id]))
    top = logs.max()
    if not math.isfinite(top):
        raise ValueError("no draw is compatible with the data: draw more, or look for the datum that contradicts the others")
    weight = np.exp(logs - top)
    return weight / weight.sum()


def effective(weight):
    """Kish's effective number of draws."""
    return 1.0 / float(np.sum(weight**2))


def quantile(values, weight, q):
    """Weighted quantiles."""
    order = np.argsort(values, kind="stable")
    steps = np.cumsum(weight[order]) - 0.5 * weight[order]
    return np.interp(q, steps, np.asarray(values, dtype=float)[order])


def rank(truth, values, weight):
    """The posterior probability below `truth`: uniform over repetitions if the posterior is right."""
    below, same = values < truth, values == truth
    return float(weight[below].sum() + 0.5 * weight[same].sum())


def kernel(points, centres, weight, width, choices, near):
    """The density at `points` of a mixture around `centres`: per coordinate, with the probability `near`, a normal reflected at 0 and 1, or of choices the same one; else
    uniform."""
    density = np.zeros(len(points))
    for centre, share in zip(centres, weight):
        if share <= 0:
            continue
        product = np.full(len(points), share)
        for place, count in enumerate(choices):
            x, c = points[:, place], centre[place]
            if count:
                same = np.floor(x * count) == math.floor(c * count)
                close = np.where(same, float(count), 0.0)
            else:
                images = [c, -c, 2.0 - c]
                close = sum(np.exp(-0.5 * ((x - image) / width[place]) ** 2) for image in images) / (width[place] * math.sqrt(2.0 * math.pi))
            product = product * (near * close + 1.0 - near)
        density += product
    return density


def perturbed(random, centres, weight, width, choices, near):
    """A point of that mixture."""
    centre = centres[random.choice(len(centres), p=weight)]
    point = np.empty(len(choices))
    for place, count in enumerate(choices):
        if random.random() >= near:
            point[place] = random.random()
        elif count:
            point[place] = (math.floor(centre[place] * count) + random.random()) / count
        else:
            x = abs(random.normal(centre[place], width[place])) % 2.0
            point[place] = min(2.0 - x if x > 1.0 else x, 1.0 - 1e-12)
    return point


def coarse(random, datum, number, sigma):
    """A synthetic datum: the number of one draw with noise `sigma`, known to lie in a bin as wide."""
    low = math.floor(random.normal(number, sigma) / sigma) * sigma
    return Datum(datum.id, datum.claim, datum.section, "synthetic", datum.of, sigma, low, low + sigma)


def calibrate(points, data, values, cases, seed, coarseness=0.5):
    """Ranks of `cases` true points under posteriors from data that were simulated with them: an array of cases × parameters, and the effective draws of each.

    A true point is a draw of the prior, left out of its own posterior. Each number is taken as its rank among all draws, from 0 to 1, with a noise so coarse that a table
    of hundreds of draws carries a posterior."""
    random = np.random.default_rng(seed)
    complete = np.flatnonzero(np.all([np.isfinite(values[d.id]) for d in data], axis=0))
    places = {d.id: np.argsort(np.argsort(values[d.id][complete], kind="stable"), kind="stable") / len(complete) for d in data}
    ranks, sizes = [], []
    for truth in random.choice(len(complete), cases, replace=False):
        synthetic = [coarse(random, d, places[d.id][truth], coarseness) for d in data]
        others = np.arange(len(complete)) != truth
        weight = weights(synthetic, {key: column[others] for key, column in places.items()}, np.ones(others.sum()))
        mine, theirs = points[complete[truth]], points[complete[others]]
        ranks.append([rank(mine[place], theirs[:, place], weight) for place in range(points.shape[1])])
        sizes.append(effective(weight))
    return np.array(ranks), np.array(sizes)
