"""The report in headless Chromium: no console error, no request, sorting, choosing a window, highlighting, light and dark."""

import json
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--window-size=1400,2400",
]  # fmt: skip


@pytest.fixture(scope="module")
def results(schedlab, root, tmp_path_factory):
    directory = tmp_path_factory.mktemp("results")
    recording = root / "workloads" / "sqlite-and-xz.perf.data.zst"
    schedlab("compare", recording, "--policy", "eevdf,take:rr,central:rr", "--cpus", "2,4", "--ci", "100%", "-o", directory)
    return directory


@pytest.fixture(scope="module")
def atlas(schedlab, tmp_path_factory):
    directory = tmp_path_factory.mktemp("atlas")
    schedlab("queue", "--queues", "sorted-list,rbtree,wheel", "--tasks", "1,10,100", "--count", "steps", "-o", directory)
    return directory


@pytest.fixture(scope="module")
def paper(schedlab, tmp_path_factory):
    directory = tmp_path_factory.mktemp("paper")
    schedlab("reproduce", "porter-2021", "--only", "P-FIG02,P-FIG25", "--cache", directory / "cache", "-o", directory)
    return directory


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for argument in QUIET:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert chromium and driver, "apt-get install chromium chromium-driver"
    options.binary_location = chromium
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield browser
    browser.quit()


@pytest.fixture
def page(browser):
    """Opens a report; afterwards nothing may have been said on the console and nothing requested but the file itself."""

    def open_report(directory):
        browser.get_log("browser"), browser.get_log("performance")
        browser.get(f"file://{directory}/report.html")
        WebDriverWait(browser, 30).until(lambda browser: browser.execute_script("return document.documentElement.dataset.ready"))
        return browser

    yield open_report
    assert browser.get_log("browser") == []
    sent = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = {event["params"]["request"]["url"] for event in sent if event["method"] == "Network.requestWillBeSent"}
    assert all(url.startswith(("file:///", "data:")) and not url.startswith("file:///favicon") for url in urls), urls
    assert len([url for url in urls if url.startswith("file:")]) == 1


def view(page):
    return page.execute_script("return schedlabReport.timelines().view")


def test_a_heading_sorts_by_value_and_back(page, results):
    page = page(results)
    heading = page.find_element(By.XPATH, "//table[@id='comparison']//button[.='makespan']")

    def values():
        cells = page.find_elements(By.CSS_SELECTOR, "#comparison tbody tr td:nth-child(3)")
        return [float(cell.get_attribute("data-value")) for cell in cells]

    unsorted = values()
    heading.click()
    assert values() == sorted(unsorted)
    heading.click()
    assert values() == sorted(unsorted, reverse=True)
    assert heading.find_element(By.XPATH, "..").get_attribute("aria-sort") == "descending"


def test_the_window_is_chosen_by_fields_buttons_and_dragging(page, results):
    page = page(results)
    whole = view(page)
    field = page.find_element(By.ID, "timeline-from")
    end = page.find_element(By.ID, "timeline-to")
    for box, text in [(field, "10ms"), (end, "30ms")]:
        box.clear()
        box.send_keys(text)
    page.find_element(By.ID, "timeline-show").click()
    assert view(page) == [10e6, 30e6]
    page.find_element(By.ID, "timeline-in").click()
    assert view(page) == [15e6, 25e6]
    page.find_element(By.ID, "timeline-right").click()
    assert view(page) == [20e6, 30e6]
    over = page.find_element(By.CSS_SELECTOR, ".timeline .u-over")
    webdriver.ActionChains(page).move_to_element_with_offset(over, -100, 0).click_and_hold().move_by_offset(200, 0).release().perform()
    assert view(page)[1] - view(page)[0] == pytest.approx(10e6 * 200 / over.size["width"], rel=0.05)
    page.find_element(By.ID, "timeline-all").click()
    assert view(page) == whole


def test_a_window_outside_the_run_is_refused_with_the_length_of_the_run(page, results):
    page = page(results)
    before = view(page)
    for name, text in [("from", "100s"), ("to", "200s")]:
        box = page.find_element(By.ID, f"timeline-{name}")
        box.clear()
        box.send_keys(text)
    box.send_keys(Keys.ENTER)
    assert "outside the runs" in page.find_element(By.ID, "timeline-error").text
    assert view(page) == before


def test_a_task_is_highlighted_by_focus_and_by_the_pointer(page, results):
    page = page(results)
    pixels = "const c = document.querySelector('.timeline canvas'); return c.toDataURL()"
    plain = page.execute_script(pixels)
    button = page.find_element(By.CSS_SELECTOR, "#timeline-tasks button")
    page.execute_script("arguments[0].focus()", button)
    assert button.get_attribute("aria-pressed") == "true"
    WebDriverWait(page, 5).until(lambda page: page.execute_script(pixels) != plain)
    page.execute_script("arguments[0].blur()", button)
    WebDriverWait(page, 5).until(lambda page: page.execute_script(pixels) == plain)
    over = page.find_element(By.CSS_SELECTOR, ".timeline .u-over")
    webdriver.ActionChains(page).move_to_element_with_offset(over, -300, -5).perform()
    assert "CPU 0" in page.find_element(By.ID, "timeline-what").text


def test_the_recording_stands_above_the_simulations_and_cpus_are_chosen(page, results):
    page = page(results)
    titles = lambda: [title.text.split(":")[0] for title in page.find_elements(By.CSS_SELECTOR, ".timeline h3")]
    assert titles()[0] == "recorded on 2 CPUs"
    Select(page.find_element(By.ID, "timeline-cpus")).select_by_value("4")
    assert titles()[0] == "recorded on 2 CPUs" and len(titles()) == 4
    assert page.execute_script("return schedlabReport.timelines().cpus") == 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(page, results, scheme, browser):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    page = page(results)
    back, front = (page.execute_script(f"return getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
    brightness = lambda color: sum(int(part) for part in color[color.index("(") + 1 : -1].split(",")[:3])
    assert (brightness(back) > brightness(front)) == (scheme == "light")


def test_the_atlas_has_a_curve_per_structure_and_says_where_they_cross(page, atlas):
    page = page(atlas)
    assert page.find_elements(By.CSS_SELECTOR, "#charts canvas")
    assert page.find_elements(By.CSS_SELECTOR, "#charts-note li")
    assert len(page.find_elements(By.CSS_SELECTOR, "#rows tbody tr")) > 9


def test_papers_begin_with_how_their_claims_stand(schedlab, page, tmp_path):
    schedlab("reproduce", "td-tp", "--only", "T-CLM02-sim,T-CLM02-lock,T-FIG02", "--cache", tmp_path / "cache", "-o", tmp_path)
    page = page(tmp_path)
    standing = [cell.text for cell in page.find_elements(By.CSS_SELECTOR, "#standing tbody tr:last-child > *")]
    assert standing == ["all", "1", "1", "0", "0", "0", "0"]
    assert "lock of the standard output" in page.find_element(By.CSS_SELECTOR, "#summary li").text
    shown = page.find_element(By.CSS_SELECTOR, "#missed ul").text
    assert "T-CLM02-lock" in shown and "holds" in shown
    link = page.find_element(By.CSS_SELECTOR, "#verdicts a[href='#T-ERR02']")
    assert page.find_element(By.ID, "T-ERR02").text.startswith("T-ERR02") and link.is_displayed()
    chart = page.find_element(By.CSS_SELECTOR, "#T-FIG02 svg")
    assert chart.is_displayed() and "lock stdout" in chart.text


def test_figures_of_a_paper_have_our_curves_and_the_printed_numbers(page, paper):
    page = page(paper)
    assert page.find_elements(By.CSS_SELECTOR, "#P-FIG02 canvas")
    labels = [label.text for label in page.find_elements(By.CSS_SELECTOR, "#P-FIG02 .u-legend .u-label")]
    assert {"Random Priorities (5)", "Random Priorities (5), printed", "Round-Robin (1)", "Round-Robin (1), printed"} <= set(labels)
    orders = [order.text.split("\n") for order in page.find_elements(By.CSS_SELECTOR, "#P-FIG25 pre")]
    assert [len(order) for order in orders] == [8, 5]
    assert orders[1][0].startswith("AA·AA··AA·AA···")
    drawn = json.loads((paper / "figures.json").read_text())["figures"]
    assert [figure["id"] for figure in drawn] == ["P-FIG02", "P-FIG25"]
    assert all(len(curve["points"]) == 5 for curve in drawn[0]["curves"])
    assert all(point["printed"] and point["value"] for curve in drawn[0]["curves"] for point in curve["points"])


def test_a_browser_runs_no_script_but_those_of_the_page(browser, results, tmp_path):
    html = (results / "report.html").read_text()
    stranger = tmp_path / "stranger.html"
    stranger.write_text(html.replace("<h1>", "<script>document.title = 'taken'</script><b onclick=\"document.title = 'taken'\" id=bold>b</b><h1>", 1))
    browser.get(f"file://{stranger}")
    WebDriverWait(browser, 30).until(lambda browser: browser.execute_script("return document.documentElement.dataset.ready"))
    browser.find_element(By.ID, "bold").click()
    assert browser.title != "taken"
    assert sum("Content Security Policy" in entry["message"] for entry in browser.get_log("browser")) == 2
    browser.get_log("performance")
