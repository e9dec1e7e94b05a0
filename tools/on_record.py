"""What stands on record of a study: rows of record.csv by claim, rows of ensembles.csv by command line. Of tools/on-record and tools/quiet."""

import csv
import io
import json


def put(record, measured, key, wanted):
    """The record in which the rows whose `key` is wanted are those measured, at the same place; texts in CSV."""
    old, new = (list(csv.reader(io.StringIO(text))) for text in (record, measured))
    if old[0] != new[0]:
        raise ValueError("the record has other columns than what was measured: it is of another version")

    def of(row):
        return key(dict(zip(old[0], row, strict=True)))

    rows = [row for row in new[1:] if of(row) in wanted]
    if absent := [name for name in wanted if name not in {of(row) for row in rows}]:
        raise ValueError(f"nothing was measured of {', '.join(absent)}")
    value = old[0].index("value")
    if untold := sorted({of(row) for row in rows if row[value] == ""}):
        raise ValueError(f"no number for {', '.join(untold)}: run it as root, with cc")
    first = next((place for place, row in enumerate(old) if place and of(row) in wanted), len(old))
    kept = [row for place, row in enumerate(old) if not place or of(row) not in wanted]
    first -= sum(of(row) in wanted for row in old[1:first])
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(kept[:first] + rows + kept[first:])
    return out.getvalue()


def keys(text, key):
    """Every key in a text in CSV, once, in order."""
    return list(dict.fromkeys(name for row in csv.DictReader(io.StringIO(text)) if (name := key(row))))


def claim(row):
    """The claim that a row judges."""
    return json.loads(row["point"] or "{}").get("claim") if row["metric"] == "check" else None


def run(row):
    """The command line of the ensemble whose number a row is."""
    return json.loads(row["point"] or "{}").get("run")
