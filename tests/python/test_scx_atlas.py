"""The atlas of schedulers in sched_ext is what its data gives, and says what it lacks."""

import json
import shutil
import subprocess
import sys


def atlas(root, place, *words):
    return subprocess.run([sys.executable, root / "tools" / "scx-atlas", "--root", place, *words], capture_output=True, text=True, check=False)


def copied(root, tmp_path):
    (tmp_path / "docs").mkdir()
    for name in ("scx-atlas.json", "scx-atlas.md", "scx-atlas.html", "scx-atlas-findings.md"):
        shutil.copy(root / "docs" / name, tmp_path / "docs" / name)
    return tmp_path


def test_the_pages_are_those_of_the_data(root, tmp_path):
    place = copied(root, tmp_path)
    assert atlas(root, place, "--check").returncode == 0
    data = json.loads((place / "docs/scx-atlas.json").read_text())
    cell = next(cell for cell in data["cells"] if cell["scheduler"] == "kernel:other" and cell["place"] == "by function")
    next(row for row in cell["rows"] if row[1].endswith("_of_side"))[3] += 100
    (place / "docs/scx-atlas.json").write_text(json.dumps(data))
    changed = atlas(root, place, "--check")
    assert changed.returncode == 4 and "scx-atlas.md" in changed.stderr, changed.stderr


def test_sides_add_up_to_the_instructions_of_a_yield_and_the_kernels_own_scheduler_has_none_of_its_own(root):
    data = json.loads((root / "docs/scx-atlas.json").read_text())
    for cell in data["cells"]:
        if cell["place"] != "by function" or "rows" not in cell:
            continue
        sides = {row[2]: row[3] for row in cell["rows"] if row[1] == "instructions_per_yield_of_side"}
        whole = next(row[3] for row in cell["rows"] if row[1] == "instructions_per_yield")
        # Between two readings of the clock lie a few instructions more.
        assert abs(sum(sides.values()) - whole) < 0.01 * whole, cell["scheduler"]
        # scx_prev has no code of its own in a yield.
        is_bpf = sides.get("sched_ext", 0) > 1
        assert is_bpf == (cell["scheduler"] != "kernel:other"), sides
    assert all(len(cell["inputs"]["kernel_sha256"]) == 64 for cell in data["cells"] if "rows" in cell)
