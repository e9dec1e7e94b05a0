"""Results: one long table of rows, as text and in Arrow's format."""

from __future__ import annotations

import html
import json
from typing import Any

from . import errors
from ._native import Answer, Table

_TEXT = ("workload", "world", "baseline", "candidate", "subject_kind", "subject", "metric", "unit", "verdict", "reason", "provenance", "note")


class Results:
    """The rows of a command. pandas, polars, DuckDB and pyarrow read them directly, without a copy: `polars.DataFrame(results)`.

    Columns: workload, world, cpus, baseline, candidate, subject_kind, subject, metric, unit, value, ci_low, ci_high (the 95 % confidence interval), runs,
    difference, effect (each with _low and _high), verdict, reason, seed, provenance, note, and one for each coordinate of a point, such as `load`. A value that cannot be measured is null, and `note` gives the reason.
    """

    def __init__(self, answer: Answer):
        self._answer = answer

    @property
    def table(self) -> Table:
        """The rows as an Arrow table."""
        return self._answer.table

    @property
    def text(self) -> str:
        """What the command line prints."""
        return self._answer.text

    @property
    def command(self) -> str:
        """The command line that produced the rows."""
        return self._answer.command

    @property
    def reproduce(self) -> str | None:
        """The same, if it gives the same digits again; None for runs on this machine, or if a time limit ended them."""
        return self._answer.reproduce

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries, with further coordinates in `point`."""
        return json.loads(self._answer.to_json())["rows"]

    def value(self, metric: str, **where: Any) -> float | None:
        """The value of `metric` in the only row that matches all of `where`, as in `value("grr", candidate="take:rr", cpus=4)`."""
        rows = self._where(metric, where)
        if len(rows) != 1:
            raise errors.UsageError(f"{len(rows)} rows have the metric {metric} where {where}: give more conditions, so that one row is left")
        return rows[0]["value"]

    def to_json(self) -> str:
        """As `--format json` prints it."""
        return self._answer.to_json()

    def to_csv(self) -> str:
        """As `--format csv` prints it."""
        return self._answer.to_csv()

    def to_parquet(self) -> bytes:
        """The bytes of `results.parquet`."""
        return self._answer.to_parquet()

    def plot(self, metric: str, x: str = "candidate", color: str | None = None, **where: Any) -> Any:
        """A chart of `metric` with its confidence intervals, by Altair. `x` and `color` are columns; a column of numbers makes a line."""
        try:
            import altair
        except ImportError as error:
            raise errors.Missing("plots need Altair: pip install 'schedlab[plots]'") from error
        rows = [_flat(row) for row in self._where(metric, where) if row["value"] is not None]
        for key in filter(None, (x, color)):
            if not all(key in row for row in rows):
                columns = sorted({key for row in rows for key in row})
                raise errors.UsageError(f"there is no column {key} to plot; the columns are {', '.join(columns)}")
        if x not in _TEXT and all(_is_number(row[x]) for row in rows):
            rows = [{**row, x: float(row[x])} for row in rows]
        is_line = bool(rows) and isinstance(rows[0][x], (int, float))
        title = f"{metric} ({rows[0]['unit']})" if rows else metric
        along = altair.X(x, type="quantitative" if is_line else "nominal", sort=None)
        base = altair.Chart(altair.Data(values=rows)).encode(x=along)
        if color:
            base = base.encode(color=altair.Color(color, type="nominal"))
        value = altair.Y("value", type="quantitative", title=title)
        marks = base.mark_line(point=True) if is_line else base.mark_bar()
        spread = base.mark_rule().encode(y=altair.Y("ci_low", type="quantitative", title=title), y2="ci_high")
        return altair.layer(marks.encode(y=value), spread)

    def _where(self, metric, where):
        rows = self.rows
        metrics = sorted({row["metric"] for row in rows})
        if metric not in metrics:
            raise errors.UsageError(_no_such("metric", metric, metrics))
        return [row for row in rows if row["metric"] == metric and all(_flat(row).get(key) in (want, str(want)) for key, want in where.items())]

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self):
        return self.table.__arrow_c_schema__()

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self):
        return f"{self.text}\nReproduce: {self.reproduce}\n" if self.reproduce else self.text

    def _repr_html_(self):
        again = f"<p>Reproduce: <code>{html.escape(self.reproduce)}</code></p>" if self.reproduce else ""
        return f"<pre>{html.escape(self.text)}</pre>{again}"


def _flat(row):
    point = {name: f"{value['value']:g}{value['unit']}" if isinstance(value, dict) else value for name, value in row["point"].items()}
    return {**point, **{key: value for key, value in row.items() if key != "point"}}


def _is_number(value):
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _no_such(what, wrong, names):
    import difflib

    near = difflib.get_close_matches(str(wrong), names, n=1, cutoff=0.5)
    hint = f" Did you mean `{near[0]}`?" if near else ""
    return f"there is no {what} named `{wrong}` here.{hint} The names are: {', '.join(names)}"
