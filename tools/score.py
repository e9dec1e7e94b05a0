"""Predicted changes and their score: `schedlab predict --on vm`, and of the rows that it writes how right they are."""

import json
import random
import statistics
import subprocess

# A smaller measured change has no sign worth predicting.
MARGIN = 0.02
# The head of the table that has Score's rows.
TITLE = "| | cells | right signs | median error | 95th percentile | intervals overlap |\n| --- | --- | --- | --- | --- | --- |"


def cells(rows):
    """By change: for each metric the predicted and the measured change, each as a mean with its interval."""
    found = {}
    for row in rows:
        if row.get("effect") is not None:
            side = 0 if row["world"] == "sim" else 1
            effect = [round(row[key], 4) for key in ("effect", "effect_low", "effect_high")]
            found.setdefault(row["point"]["change"], {}).setdefault(row["metric"], [None, None])[side] = effect
    return {change: {metric: both for metric, both in of.items() if None not in both} for change, of in found.items()}


def predicted(program, root, workload, changes, costs, *words):
    """The cells of these changes. `costs` is a file of what kernels cost: what it has is not measured again, and what it has not is added. Raises CalledProcessError, with what was said."""
    words = [program, "predict", workload, "--on", "vm", "--format", "json", *words]
    words += [word for change in changes for word in ("--change", change)]
    words += ["--costs", costs] if costs.exists() else []
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, cwd=root, check=True)
    made = json.loads(done.stdout)
    of = cells(made["rows"])
    made["rows"] = [row for row in made["rows"] if row["metric"] == "kernel_cost_ns"]
    costs.write_text(json.dumps(made))  # those read, and those measured
    return of


class Score:
    """Of pairs of a workload and a change, each with its cells."""

    def __init__(self, of):
        self.clusters = [list(pair["cells"].values()) for pair in of if pair["cells"]]
        self.cells = [cell for cluster in self.clusters for cell in cluster]
        self.errors = sorted(100 * abs(predicted[0] - measured[0]) for predicted, measured in self.cells)
        signed = [cell for cell in self.cells if has_sign(cell)]
        self.changed, self.right = len(signed), sum(not is_miss(cell) for cell in signed)

    def median(self):
        return statistics.median(self.errors)

    def worst(self):
        return self.errors[-(-95 * (len(self.errors) - 1) // 100)]

    def covered(self):
        return share(self.clusters)

    def interval(self, draws=2000):
        """Of the coverage, 95 %: cells of a pair share their runs, so pairs are drawn."""
        if len(self.clusters) < 2:
            return None
        drawn = random.Random(1)
        shares = sorted(share(drawn.choices(self.clusters, k=len(self.clusters))) for _ in range(draws))
        return shares[draws // 40], shares[-draws // 40]

    def row(self, name):
        if not self.cells:
            return f"| {name} | 0 | | | | |"
        interval = self.interval()
        of = "" if interval is None else f" ({100 * interval[0]:.0f} to {100 * interval[1]:.0f})"
        signs = f"{self.right} of {self.changed} ({100 * self.right / self.changed:.0f} %)" if self.changed else "none"
        return f"| {name} | {len(self.cells)} of {len(self.clusters)} pairs | {signs} | {self.median():.1f} | {self.worst():.0f} | {100 * self.covered():.0f} %{of} |"


def share(clusters):
    cells = [cell for cluster in clusters for cell in cluster]
    return sum(predicted[1] <= measured[2] and measured[1] <= predicted[2] for predicted, measured in cells) / len(cells)


def has_sign(cell):
    _, (_, low, high) = cell
    return low > MARGIN or high < -MARGIN


def is_miss(cell):
    (predicted, _, _), (measured, _, _) = cell
    return has_sign(cell) and predicted * measured <= 0
