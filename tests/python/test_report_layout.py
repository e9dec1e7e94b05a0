"""How the report is laid out: on a phone, a tablet and a desk, light and dark, for eyes, for keys and for a screen reader. Each check is shown to fail on a page that is made wrong."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
]  # fmt: skip
WIDTHS = [360, 768, 1280]
PAGES = ["comparison", "atlas", "costs", "sweep", "paper"]
GRID = """workload = "unix1990"
policies = ["initial:rr", "central:rr", "take:rr"]
baseline = "initial:rr"
seeds = 3
[axes]
load = [0.5, 0.8]
"""
AXE, AXE_SHA256 = "4.10.3", "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb"
LAYOUT = (Path(__file__).parent / "layout.js").read_text()
LONG = "a-name-that-nobody-would-give-to-a-policy-but-that-somebody-can<b>"


@pytest.fixture(scope="module")
def pages(schedlab, root, tmp_path_factory):
    """A directory of results for each kind of page."""
    at = {name: tmp_path_factory.mktemp(name) for name in PAGES}
    recording = root / "workloads" / "sqlite-and-xz.perf.data.zst"
    schedlab("compare", recording, "--policy", "eevdf,take:rr,central:rr", "--cpus", "2,4", "--by", "comm", "-o", at["comparison"])
    schedlab("queue", "--queues", "sorted-list,rbtree,wheel", "--tasks", "1,10,100", "--count", "steps", "-o", at["atlas"])
    costs(schedlab, at["comparison"], at["costs"])
    (at["sweep"] / "loads.grid.toml").write_text(GRID)
    schedlab("sweep", at["sweep"] / "loads.grid.toml", "-o", at["sweep"])
    schedlab("reproduce", "porter-2021", "--only", "P-FIG02,P-FIG25,P-TAB12", "--cache", at["paper"] / "cache", "-o", at["paper"])
    return at


def costs(schedlab, comparison, directory):
    """Instructions by function in a guest and numbers of a host, under long names: no guest is booted for a layout."""
    results = json.loads((comparison / "results.json").read_text())
    empty = {key: None for key in results["rows"][0]} | {"point": {}, "runs": 16, "workload": "yield:8", "cpus": 1, "seed": 1}

    def row(world, candidate, metric, unit, value, **more):
        return empty | {"world": world, "candidate": candidate, "metric": metric, "unit": unit, "value": value} | more

    functions = ["__schedule", "pick_eevdf", "update_curr", "do_syscall_64", "_raw_spin_lock", "a_function_of_a_very_long_name_that_is_cut_or_wraps"]
    rows = [
        row("vm:6.18", candidate, "instructions_per_yield_in_function", "instructions", 400.0 / (place + 1), subject_kind="function", subject=function)
        for candidate in ["kernel:other", LONG]
        for place, function in enumerate(functions)
    ]
    judged = {"baseline": "kernel:other", "effect": 0.3, "effect_low": 0.2, "effect_high": 30.0, "difference": 1e6, "verdict": "worse"}
    rows += [row("host", "kernel:other", "makespan_ns", "ns", 1e6), row("host", LONG, "makespan_ns", "ns", 2e6, **judged)]
    results |= {"rows": rows, "answer": f"`{LONG}` would help.\nSwitch it on:\n  chrt --batch --pid 0 $$ && {LONG * 3}\n"}
    (directory / "results.json").write_text(json.dumps(results))
    schedlab("report", directory)


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for argument in QUIET:
        options.add_argument(argument)
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert chromium and driver, "apt-get install chromium chromium-driver"
    options.binary_location = chromium
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    browser.set_script_timeout(120)
    yield browser
    browser.quit()


def open_page(browser, directory, width=1280, scheme="light"):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    browser.get(f"file://{directory}/report.html")
    WebDriverWait(browser, 60).until(lambda page: page.execute_script("return document.documentElement.dataset.ready"))
    return browser


def unfold(page):
    page.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wide_clipped_overlapping_pale_or_unnamed(browser, pages, name, width, scheme):
    page = open_page(browser, pages[name], width, scheme)
    assert page.execute_script("return innerWidth") == width
    assert page.execute_script(LAYOUT) == []
    unfold(page)
    assert page.execute_script(LAYOUT) == []


CANARIES = {
    "wide": "<div style='width: 3000px'>wide</div>",
    "clipped": "<div style='width: 3rem; overflow: hidden; white-space: nowrap'>a text that is cut off</div>",
    "overlap": "<p style='margin: 0; height: 0'>one text on</p><p style='margin: 0'>another text</p>",
    "contrast": "<p style='color: #999; background: #fff'>pale</p>",
    "heading": "<h5>a level is left out</h5>",
    "unnamed": "<svg width=10 height=10><rect width=10 height=10></rect></svg>",
    "scope": "<table><caption>numbers</caption><tr><th>of nothing</table>",
}


@pytest.mark.parametrize("check", CANARIES)
def test_each_check_sees_a_page_that_is_wrong(browser, pages, check):
    page = open_page(browser, pages["atlas"])
    page.execute_script("document.querySelector('main').insertAdjacentHTML('beforeend', arguments[0])", CANARIES[check])
    found = page.execute_script(LAYOUT)
    assert found and all(complaint.startswith(f"{check}:") for complaint in found), found


@pytest.fixture(scope="module")
def axe(root):
    path = root / "target" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
    if not path.exists():
        pytest.skip(f"axe-core is not installed: npm install --prefix target/npm --ignore-scripts axe-core@{AXE}")
    text = path.read_text()
    assert hashlib.sha256(text.encode()).hexdigest() == AXE_SHA256, f"this is not axe-core {AXE}"
    return text


def violations(page, axe):
    page.execute_script(axe)
    run = "const done = arguments[0]; axe.run().then((found) => done(found.violations), (error) => done(String(error)))"
    found = page.execute_async_script(run)
    assert isinstance(found, list), found
    return [f"{one['id']}: {node['html'][:120]}" for one in found for node in one["nodes"]]


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_screen_reader_can_use_it(browser, pages, axe, name, width):
    page = open_page(browser, pages[name], width)
    unfold(page)
    assert violations(page, axe) == []


def test_axe_sees_a_page_that_is_wrong(browser, pages, axe):
    page = open_page(browser, pages["atlas"])
    page.execute_script("document.querySelector('main').insertAdjacentHTML('beforeend', '<button></button>')")
    assert any(one.startswith("button-name") for one in violations(page, axe))


def test_the_answer_its_rest_and_its_fidelity_come_first_and_provenance_is_folded(browser, pages):
    page = open_page(browser, pages["comparison"])
    titles = [title.text for title in page.find_elements(By.CSS_SELECTOR, "main h2")]
    assert titles[:4] == ["Answer", "How far to trust it", "Differences from the baseline", "Who gains, who pays"]
    assert "runs each against eevdf" in page.find_element(By.ID, "answer").text
    replayed = json.loads((pages["comparison"] / "fidelity.json").read_text())["replays"][0]
    trust = page.find_element(By.ID, "trust").text
    assert f"{replayed['runs']} times under {replayed['policy']} on its {replayed['cpus']} CPUs" in trust
    makespan = next(one for one in replayed["errors"] if one["metric"] == "makespan_ns")
    assert f"makespan ({100 * makespan['error']:.{int(makespan['error'] < 0.0995)}f} %)" in trust
    assert not page.find_element(By.CSS_SELECTOR, "#provenance dl").is_displayed()
    links = [link.get_attribute("href").split("#")[1] for link in page.find_elements(By.CSS_SELECTOR, "nav a")]
    assert links == [section.get_attribute("id") for section in page.find_elements(By.CSS_SELECTOR, "main section")]


def test_every_page_begins_with_what_was_found(browser, pages):
    said = {name: open_page(browser, at).find_element(By.CSS_SELECTOR, "p.answer").text for name, at in pages.items()}
    assert all("Nothing was compared" not in text for text in said.values()), said
    assert "Against initial:rr: take:rr is better in " in said["sweep"]
    assert said["paper"] == "2 of 2 checks of printed tables hold."
    places = [text.text for text in open_page(browser, pages["comparison"]).find_elements(By.CSS_SELECTOR, "p.answer")]
    assert [text.split(":")[0] for text in places] == [f"sqlite-and-xz.perf.data.zst (sim, {cpus} CPUs)" for cpus in (2, 4)]


def test_each_decided_number_has_a_dot_where_its_effect_is(browser, pages):
    page = open_page(browser, pages["comparison"])
    rows = json.loads((pages["comparison"] / "results.json").read_text())["rows"]
    judged = [row for row in rows if row["baseline"] and not row["subject"]]
    decided = [row for row in judged if row["verdict"] in ("better", "worse", "equivalent")]
    interesting = {(row["metric"], row["cpus"]) for row in decided if row["verdict"] != "equivalent"}
    drawn = [row for row in decided if (row["metric"], row["cpus"]) in interesting]
    assert drawn and len(page.find_elements(By.CSS_SELECTOR, "#effects td.picture")) == len(drawn)
    sides = """return [...document.querySelectorAll('#effects svg.whisker')].map((svg) => {
      const at = (one) => one.getBoundingClientRect();
      const [zero, dot] = [at(svg.querySelector('.zero')), at(svg.querySelector('circle, path'))];
      return [Math.sign((dot.left + dot.right) / 2 - zero.left), svg.closest('tr').querySelector('.number').firstChild.data];
    });"""
    unfold(page)
    for side, text in page.execute_script(sides):
        assert side == (-1 if "−" in text else 1) or " 0" in text or abs(float(text.split("\u00a0")[0].split(" ")[-1].replace("−", "-"))) < 1, (side, text)


def test_a_timeline_is_moved_and_zoomed_by_keys_and_a_task_is_found(browser, pages):
    page = open_page(browser, pages["comparison"])
    state = lambda: page.execute_script("return schedlabReport.timelines()")
    place = page.find_element(By.ID, "timelines")
    page.execute_script("arguments[0].focus()", place)
    place.send_keys(Keys.HOME)
    [begin, end] = state()["view"]
    place.send_keys("+")
    assert state()["view"][1] - state()["view"][0] == pytest.approx((end - begin) / 2)
    before = state()["view"][0]
    place.send_keys(Keys.ARROW_RIGHT)
    assert state()["view"][0] > before
    assert "From " in page.find_element(By.ID, "timeline-what").text
    search = page.find_element(By.ID, "timeline-search")
    search.send_keys("no such task")
    assert "No task" in page.find_element(By.ID, "timeline-found").text
    search.clear()
    search.send_keys("sqlite")
    shown = [button.text for button in page.find_elements(By.CSS_SELECTOR, "#timeline-tasks button")]
    assert shown and all("sqlite" in text for text in shown), shown
    search.send_keys(Keys.ENTER)
    kept = state()["kept"]
    assert kept is not None and "sqlite" in page.find_element(By.ID, "timeline-found").text
    first = state()["moment"]
    page.find_element(By.ID, "timeline-next").click()
    assert state()["moment"] > first
    page.find_element(By.ID, "timeline-previous").click()
    assert state()["moment"] == first
    rows = page.find_elements(By.CSS_SELECTOR, "#timeline-moment tbody tr")
    assert len(rows) == len(page.find_elements(By.CSS_SELECTOR, ".timeline")) and any("sqlite" in row.text for row in rows)
    page.execute_script("arguments[0].focus()", place)
    place.send_keys(Keys.ESCAPE)
    assert state()["kept"] is None


def test_where_the_keyboard_is_can_be_seen(browser, pages):
    page = open_page(browser, pages["comparison"])
    body = page.find_element(By.TAG_NAME, "body")
    for _ in range(25):
        body.send_keys(Keys.TAB) if page.switch_to.active_element == body else page.switch_to.active_element.send_keys(Keys.TAB)
        outline = page.execute_script("const style = getComputedStyle(document.activeElement); return [document.activeElement.tagName, style.outlineStyle, parseFloat(style.outlineWidth)]")
        assert outline[1] != "none" and outline[2] >= 1, outline


def test_a_page_is_small(pages):
    assert all((at / "report.html").stat().st_size < 2_000_000 for at in pages.values())
