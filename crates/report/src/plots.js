/** A count with its noun. */
const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

/** A colour of the style sheet. */
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The colour of the n-th of many things; neighbours are far apart. */
const color = (n) => `hsl(${(210 + n * 137.508) % 360} ${css("--task-color")} ${css("--task-light")})`;

/** Nanoseconds with a unit, to three digits or to as many as are asked for. */
function duration(ns, digits = 3) {
  if (ns === null || ns === undefined) return "–";
  const [scale, unit] = ns < 1e3 ? [1, "ns"] : ns < 1e6 ? [1e3, "us"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  return `${Number((ns / scale).toPrecision(digits))}${unit}`;
}

/** Fills a choice and calls `chosen` with what is chosen, now and later. */
function choice(id, options, chosen) {
  const select = document.getElementById(id);
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  select.addEventListener("change", () => chosen(select.value));
  return () => chosen(select.value);
}

const axis = (more) => ({ stroke: css("--front"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") }, ...more });

/** Where a log axis has its lines: at powers of ten, and between them if there are few. */
function decades(u, _, min, max) {
  const powers = [];
  for (let power = Math.floor(Math.log10(min)); 10 ** power <= max * 1.0001; power++) powers.push(...(max / min > 200 ? [1] : [1, 2, 5]).map((digit) => digit * 10 ** power));
  return powers.filter((y) => y >= min * 0.9999 && y <= max * 1.0001);
}

/** Lines with intervals: each is {label, value, low, high}. */
function lines(place, curves, x, options) {
  const series = [{ label: options.x, value: (_, x) => (x === null ? "–" : options.xValue(x)) }];
  const [data, bands] = [[x], []];
  curves.forEach((curve, index) => {
    const stroke = color(index);
    series.push({ label: curve.label, stroke, width: 2, dash: curve.dash, points: { show: options.points, size: 6 }, value: (_, y) => options.yValue(y) });
    data.push(curve.value);
    if (curve.low.some((value) => value !== null)) {
      const border = { stroke, width: 1, dash: [2, 3], points: { show: false }, class: "interval" };
      series.push({ ...border, label: `${curve.label} low` }, { ...border, label: `${curve.label} high` });
      data.push(curve.low, curve.high);
      bands.push({ series: [data.length - 1, data.length - 2], fill: stroke.replace(")", " / 18%)") });
    }
  });
  place.replaceChildren();
  const plot = new uPlot({
    width: place.clientWidth, height: 380, series, bands,
    scales: { x: { time: false, ...options.xScale }, y: { distr: 3, log: 10 } },
    axes: [axis(options.xAxis), axis({ size: 70, splits: decades, values: (_, values) => values.map((y) => (y === null ? "" : options.yValue(y))) })],
    hooks: { draw: options.draw ? [options.draw] : [] },
    legend: { live: true },
  }, data, place);
  plot.root.querySelectorAll(".u-series").forEach((row, index) => series[index]?.class && row.classList.add(series[index].class));
  named(plot, `${options.x}: ${curves.map((curve) => curve.label).join(", ")}`);
  return plot;
}

/** Gives the picture of a plot a name, and its legend, which is a table for its looks alone, none. */
function named(plot, text) {
  const picture = plot.root.querySelector(".u-wrap");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", text);
  plot.root.querySelector("table.u-legend")?.setAttribute("role", "presentation");
}

/** A log axis has no zero. */
const positive = (values) => values.map((value) => (value === null ? null : Math.max(value, 1)));

/** The distributions: percentiles on an axis on which each nine takes the same room. */
function drawCurves(curves) {
  const place = document.getElementById("curves");
  const names = { wakeup_latency: "wakeup latency", burst: "CPU bursts", pause: "pauses", response_time: "response time" };
  const unique = (values) => [...new Set(values)];
  let [of, cpus, plot] = [curves[0].of, curves[0].cpus, null];
  const nines = (percent) => -Math.log10(1 - percent / 100);
  const percent = (nines) => `${Number((100 - 100 * 10 ** -nines).toFixed(3))} %`;
  function draw() {
    const shown = curves.filter((curve) => curve.of === of && (curve.cpus === cpus || curve.policy === "recorded"));
    const longest = shown.reduce((a, b) => (b.percent.length > a.percent.length ? b : a), shown[0] ?? { percent: [] });
    const fill = (values) => longest.percent.map((_, index) => values[index] ?? null);
    const rows = shown.map((curve) => ({
      label: curve.policy === "recorded" ? `recorded, ${counted(curve.cpus, "CPU")}` : curve.policy, dash: curve.policy === "recorded" ? [6, 4] : undefined,
      value: positive(fill(curve.value)), low: positive(fill(curve.ci_low)), high: positive(fill(curve.ci_high)),
    }));
    plot = lines(place, rows, longest.percent.map(nines), {
      x: "percentile", xValue: percent, yValue: duration, points: false,
      xAxis: { splits: (_, __, min, max) => [0, Math.log10(2), 1, 2, 3, 4, 5].filter((x) => x >= min && x <= max), values: (_, xs) => xs.map(percent) },
    });
    const runs = shown.map((curve) => `${curve.policy}: ${curve.samples} samples, ${counted(curve.runs, "run")}`);
    document.getElementById("curves-note").textContent =
      `${runs.join("; ")}. Shaded: 95 % interval by bootstrap over runs; a policy that draws no random numbers has one run and no interval. A curve ends where fewer than ten samples lie beyond it.`;
  }
  choice("curves-of", unique(curves.map((curve) => curve.of)).map((of) => [of, names[of] ?? of]), (value) => { of = value; draw(); });
  const simulated = curves.filter((curve) => curve.policy !== "recorded");
  const counts = unique((simulated.length ? simulated : curves).map((curve) => curve.cpus));
  cpus = counts[0];
  choice("curves-cpus", counts.map((n) => [n, counted(n, "CPU")]), (value) => { cpus = Number(value); draw(); });
  return { draw, resize: () => plot?.setSize({ width: place.clientWidth, height: 380 }) };
}

/** The cost atlas: one curve per structure, a line where another one becomes the cheapest. */
function drawCharts(charts) {
  const place = document.getElementById("charts");
  let [chart, plot] = [charts[0], null];
  function draw() {
    const number = (value) => (value === null ? "–" : chart.unit === "ns" ? duration(value) : `${Number(value.toPrecision(4))}`);
    const rows = chart.structures.map((one) => ({ label: one.name, value: one.value, low: one.ci_low, high: one.ci_high }));
    const zero = rows.some((row) => row.value.some((value) => value !== null && value <= 0));
    const mark = (u) => {
      u.ctx.save();
      Object.assign(u.ctx, { strokeStyle: css("--soft"), fillStyle: css("--front"), lineWidth: devicePixelRatio, font: `${12 * devicePixelRatio}px sans-serif` });
      u.ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
      chart.crossovers.forEach((crossover, index) => {
        const x = u.valToPos(crossover.tasks, "x", true);
        u.ctx.beginPath();
        u.ctx.moveTo(x, u.bbox.top);
        u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
        u.ctx.stroke();
        u.ctx.textAlign = "left";
        u.ctx.fillText(`${crossover.to} from ${Number(crossover.tasks.toPrecision(3))}${crossover.certain ? "" : " (undecided)"}`, x + 4 * devicePixelRatio, u.bbox.top + (14 + 14 * index) * devicePixelRatio);
      });
      u.ctx.restore();
    };
    const clean = (values) => (zero ? positive(values) : values);
    plot = lines(place, rows.map((row) => ({ ...row, value: clean(row.value), low: clean(row.low), high: clean(row.high) })), chart.tasks, {
      x: "tasks", xValue: String, yValue: number, points: true, draw: mark, xScale: { distr: 3, log: 10 },
      xAxis: { label: "tasks", labelSize: 20, splits: decades, values: (_, xs) => xs.map((x) => (x === null ? "" : String(x))) },
    });
    const notes = chart.crossovers.map((one) => `From about ${Number(one.tasks.toPrecision(3))} tasks on ${one.to} is cheaper than ${one.from} (a straight line between the measured numbers of tasks)${one.certain ? "." : "; undecided, because the intervals overlap."}`);
    if (notes.length === 0) notes.push("The same structure is the cheapest throughout.");
    notes.push(zero ? "Costs of zero are drawn at 1." : "Shaded: 95 % interval over assignments of levels, or over runs.");
    document.getElementById("charts-note").replaceChildren(...notes.map((note) => Object.assign(document.createElement("li"), { textContent: note })));
  }
  choice("charts-which", charts.map((chart, index) => [index, `${chart.metric} (${chart.unit}), ${chart.conditions}`]), (index) => { chart = charts[index]; draw(); });
  return { draw, resize: () => plot?.setSize({ width: place.clientWidth, height: 380 }) };
}
