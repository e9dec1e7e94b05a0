"""tools/history: the tables of docs/kernels.md are what docs/kernels.json gives, and nothing else is."""

import json

import pytest


@pytest.fixture
def checkout(copy_of_docs):
    return copy_of_docs("kernels.json", "kernels.md")


@pytest.fixture
def history(code_of):
    return code_of("history")


def data(checkout):
    return json.loads((checkout / "docs" / "kernels.json").read_text())


def test_the_page_is_what_the_data_gives(root, history):
    assert history(root, "--check") == 0


def test_at_least_six_kernels_and_all_five_operations_are_there(root):
    kernels = data(root)["kernels"]
    assert len(kernels) >= 6
    for kernel in kernels:
        assert set(kernel["counts"]) == {"yield", "switch", "wake-up", "fork", "hackbench"}
        assert len(kernel["kernel_sha256"]) == 64
        for operation in ("yield", "switch", "wake-up"):
            assert kernel["counts"][operation]["__switch_to_asm"] > 10, f"{operation}: an operation is a switch"


def test_a_count_of_any_kernel_that_differs_is_found(checkout, history):
    place = checkout / "docs" / "kernels.json"
    for at in range(len(data(checkout)["kernels"])):
        kept = place.read_text()
        changed = data(checkout)
        changed["kernels"][at]["counts"]["yield"]["__schedule"] += 1000
        place.write_text(json.dumps(changed))
        assert history(checkout, "--check") == 4
        place.write_text(kept)
    assert history(checkout, "--check") == 0


def test_a_figure_that_was_changed_by_hand_is_found_and_mended(checkout, history):
    page = checkout / "docs" / "kernels.md"
    kept = page.read_text()
    begin = kept.index("<!-- history -->")
    digit = next(at for at in range(begin, len(kept)) if kept[at].isdigit())
    page.write_text(kept[:digit] + str((int(kept[digit]) + 1) % 10) + kept[digit + 1 :])
    assert history(checkout, "--check") == 4
    assert history(checkout) == 0
    assert page.read_text() == kept


def test_a_function_that_comes_into_being_is_listed(checkout, history):
    place, page = checkout / "docs" / "kernels.json", checkout / "docs" / "kernels.md"
    changed = data(checkout)
    changed["kernels"][-1]["counts"]["fork"]["a_new_function"] = 1e6
    place.write_text(json.dumps(changed))
    assert history(checkout) == 0
    line = next(line for line in page.read_text().splitlines() if "a_new_function" in line)
    assert line.startswith(f"| {changed['kernels'][-2]['kernel']} | {changed['kernels'][-1]['kernel']} |")
    assert "`a_new_function` 0.0 → 1,000,000" in line
