// Looks at a page as it is laid out, and returns what is wrong with it, in words. Run by test_report_layout.py.
const wide = innerWidth + 1;
const complaints = [];
const name = (element) => `${element.tagName.toLowerCase()}${element.id ? `#${element.id}` : ""}${typeof element.className === "string" && element.className ? `.${element.className.replaceAll(" ", ".")}` : ""} "${(element.textContent || "").trim().slice(0, 40)}"`;
const say = (what, element, more = "") => complaints.push(`${what}: ${name(element)} ${more}`.trim());
const isQuiet = (element) => element.closest(".quiet, .skip, script, style, head") !== null;
const scroller = (element) => { for (let one = element; one && one !== document.documentElement; one = one.parentElement) if (/auto|scroll/.test(getComputedStyle(one).overflowX) && one !== document.body) return one; return null; };
const isShown = (element) => element.checkVisibility({ visibilityProperty: true }) && !isQuiet(element);
const elements = [...document.body.querySelectorAll("*")].filter(isShown);

// Nothing is wider than the window, but what scrolls by itself.
if (document.documentElement.scrollWidth > wide) complaints.push(`wide: the page is ${document.documentElement.scrollWidth} wide, the window ${innerWidth}`);
for (const element of elements) {
  const box = element.getBoundingClientRect();
  if (box.width > 0 && (box.right > wide || box.left < -1) && !scroller(element.parentElement)) say("wide", element, `from ${box.left} to ${box.right}`);
}

// No text is cut off.
for (const element of elements) {
  if (element.namespaceURI !== document.body.namespaceURI || /^(SELECT|INPUT|OPTION|CANVAS)$/.test(element.tagName)) continue;
  const style = getComputedStyle(element);
  const cuts = (way) => /hidden|clip/.test(style[`overflow${way}`]);
  if (!element.textContent.trim()) continue;
  if ((cuts("X") && element.scrollWidth > element.clientWidth + 1) || (cuts("Y") && element.scrollHeight > element.clientHeight + 1)) say("clipped", element, `${element.scrollWidth}×${element.scrollHeight} in ${element.clientWidth}×${element.clientHeight}`);
}

// No text lies on another.
const texts = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const element = node.parentElement;
  if (!node.data.trim() || !isShown(element) || element.closest("option, title")) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  const frame = scroller(element)?.getBoundingClientRect();
  for (const box of range.getClientRects()) {
    const [left, right] = [Math.max(box.left, frame?.left ?? 0), Math.min(box.right, frame?.right ?? Infinity)];
    if (right - left > 1 && box.height > 1) texts.push({ node, element, left, right, top: box.top, bottom: box.bottom });
  }
}
texts.sort((a, b) => a.top - b.top);
texts.forEach((one, index) => {
  for (let at = index + 1; at < texts.length && texts[at].top < one.bottom; at++) {
    const other = texts[at];
    if (other.node === one.node) continue;
    const [x, y] = [Math.min(one.right, other.right) - Math.max(one.left, other.left), Math.min(one.bottom, other.bottom) - other.top];
    if (x > 1.5 && y > 0.35 * Math.min(one.bottom - one.top, other.bottom - other.top)) say("overlap", one.element, `and ${name(other.element)}`);
  }
});

// Text stands out from what is behind it.
const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const rgba = (color) => { paint.clearRect(0, 0, 1, 1); paint.fillStyle = color; paint.fillRect(0, 0, 1, 1); const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
const over = (front, back) => front.slice(0, 3).map((part, index) => part * front[3] + back[index] * (1 - front[3]));
const light = (color) => { const [r, g, b] = color.map((part) => { const share = part / 255; return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (element) => {
  const layers = [];
  for (let one = element; one; one = one.parentElement) {
    const shape = one.namespaceURI.endsWith("svg") && /^(text|tspan)$/.test(one.tagName) && one.previousElementSibling?.tagName === "rect" ? getComputedStyle(one.previousElementSibling).fill : getComputedStyle(one).backgroundColor;
    const layer = rgba(shape);
    layers.push(layer);
    if (layer[3] === 1) break;
  }
  return layers.reverse().reduce((back, layer) => over(layer, back), [255, 255, 255]);
};
const seen = new Set();
for (const { element } of texts) {
  if (seen.has(element) || element.matches(":disabled")) continue;
  seen.add(element);
  const [style, back] = [getComputedStyle(element), behind(element)];
  const front = over(rgba(element.namespaceURI.endsWith("svg") ? style.fill : style.color), back);
  const [high, low] = [light(front), light(back)].sort((a, b) => b - a);
  const contrast = (high + 0.05) / (low + 0.05);
  if (contrast < 4.5) say("contrast", element, contrast.toFixed(2));
}

// Headings are in order.
const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((heading) => [Number(heading.tagName[1]), heading]);
if (levels.filter(([level]) => level === 1).length !== 1) complaints.push("heading: there is not one h1");
levels.forEach(([level, heading], index) => { if (level > (levels[index - 1]?.[0] ?? 0) + 1) say("heading", heading, `is of level ${level} after ${levels[index - 1]?.[0] ?? 0}`); });

// Pictures, tables and controls have names.
const isNamed = (element) => Boolean(element.getAttribute("aria-label") || element.getAttribute("aria-labelledby") || element.getAttribute("alt"));
for (const picture of document.querySelectorAll("img, svg, canvas")) {
  if (picture.closest("[aria-hidden=true]") || picture.parentElement.closest("svg, [role=img], [role=application]")) continue;
  if (!isNamed(picture) && !picture.querySelector(":scope > title")) say("unnamed", picture);
}
for (const place of document.querySelectorAll("[role=img], [role=application], [role=region], nav")) if (!isNamed(place)) say("unnamed", place);
for (const figure of document.querySelectorAll("figure")) if (!figure.querySelector("figcaption")) say("unnamed", figure);
for (const table of document.querySelectorAll("table")) {
  if (table.classList.contains("u-legend")) continue;
  if (!table.caption?.textContent.trim()) say("unnamed", table, "has no caption");
  for (const heading of table.querySelectorAll("th")) if (!heading.scope) say("scope", heading);
}
for (const control of document.querySelectorAll("input, select")) if (!control.labels?.length && !isNamed(control)) say("unnamed", control);
for (const button of document.querySelectorAll("button, summary, a[href]")) if (!button.textContent.trim() && !isNamed(button)) say("unnamed", button);
return complaints;
