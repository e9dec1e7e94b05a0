"""How much work it is to open a report. Seconds differ between machines, so what is held are counts: bytes, elements, and shapes that are painted."""

import json
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip
# The most that a page may have. Half of it opened within a second on two busy CPUs.
MOST = {"bytes": 2_000_000, "elements": 12_000, "shapes": 40_000, "made": 2_000}
# Counts before the page's first script what it paints and makes.
COUNTING = """globalThis.work = { shapes: 0, made: 0 };
for (const [of, name, what] of [
  ...["fillRect", "stroke", "fill", "fillText"].map((name) => [CanvasRenderingContext2D.prototype, name, "shapes"]), [Document.prototype, "createElement", "made"],
]) { const own = of[name]; of[name] = function (...given) { work[what]++; return own.apply(this, given); }; }"""
MILLION = """description = "pairs over pipes and sleepers: a million events of each policy"
cpus = 4
[[task]]
name = "ping"
phases = [ { loop = { times = 44000, phases = [ { run = "30us" }, { write = { pipe = "there", bytes = 1 } }, { read = { pipe = "back", bytes = 1 } } ] } } ]
[[task]]
name = "pong"
phases = [ { loop = { times = 44000, phases = [ { read = { pipe = "there", bytes = 1 } }, { run = "30us" }, { write = { pipe = "back", bytes = 1 } } ] } } ]
[[task]]
name = "sleeper"
count = 50
phases = [ { loop = { times = 3300, phases = [ { run = "50us" }, { sleep = "1ms" } ] } } ]
"""


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for argument in [*QUIET, "--window-size=1280,900"]:
        options.add_argument(argument)
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert chromium and driver, "apt-get install chromium chromium-driver"
    options.binary_location = chromium
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNTING})
    yield browser
    browser.quit()


def too_much(browser, page, also=""):
    """What of a page is more than it may have, after all that it does at once, and the script `also`, is done."""
    browser.get(f"file://{page}")
    WebDriverWait(browser, 60).until(lambda browser: browser.execute_script("return document.documentElement.dataset.ready"))
    browser.execute_script(also)
    counted = browser.execute_async_script("requestIdleCallback(() => arguments[0]({ ...work, elements: document.querySelectorAll('*').length }))")
    counted["bytes"] = page.stat().st_size
    assert counted["elements"] > 100 and counted.keys() == MOST.keys()
    return {what: count for what, count in counted.items() if count > MOST[what]}


@pytest.fixture(scope="module")
def first_answer(schedlab, root, tmp_path_factory):
    """The page of `make lab`."""
    directory = tmp_path_factory.mktemp("lab")
    schedlab("compare", root / "workloads" / "causes" / "groff.rec.zst", "-o", directory)
    return directory / "report.html"


def test_the_page_of_the_first_answer_is_little_work(browser, first_answer):
    assert too_much(browser, first_answer) == {}


CANARIES = {
    "bytes": ("<!--" + "." * MOST["bytes"] + "-->", ""),
    "elements": ("<p>" * MOST["elements"], ""),
    "shapes": ("<canvas id=large></canvas>", f"const at = document.getElementById('large').getContext('2d'); for (let n = 0; n < {MOST['shapes']}; n++) at.fillRect(n, 0, 1, 1)"),
    "made": ("", f"for (let n = 0; n < {MOST['made']}; n++) document.createElement('p')"),
}


@pytest.mark.parametrize("what", CANARIES)
def test_a_page_that_is_too_much_work_is_seen(browser, first_answer, tmp_path, what):
    page = tmp_path / "report.html"
    more, also = CANARIES[what]
    page.write_text(first_answer.read_text() + more)
    assert list(too_much(browser, page, also)) == [what]


@pytest.mark.long
def test_the_page_of_a_million_events_is_little_work(browser, schedlab, tmp_path):
    (tmp_path / "million.toml").write_text(MILLION)
    schedlab("compare", tmp_path / "million.toml", "--policy", "eevdf,take:rr,central:rr", "--cpus", "2,4", "-o", tmp_path)
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert max(row["value"] or 0 for row in rows if row["metric"] == "switches") > 300_000
    assert too_much(browser, tmp_path / "report.html") == {}
