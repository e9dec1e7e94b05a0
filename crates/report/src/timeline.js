/** Reads the numbers of a packed timeline one after another. */
class Numbers {
  constructor(base64) {
    this.bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    this.at = 0;
  }
  next() {
    let [value, scale] = [0, 1];
    for (;;) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  }
}

/** One run: its intervals by CPU, and its overview. */
class Run {
  constructor(packed) {
    Object.assign(this, { policy: packed.policy, cpus: packed.cpus, end: packed.end, exact: packed.exact, cell: packed.cell, intervals: packed.intervals });
    const runs = new Numbers(packed.runs);
    this.shown = 0;
    this.rows = Array.from({ length: this.cpus }, () => {
      const count = runs.next();
      this.shown += count;
      const row = { start: new Float64Array(count), end: new Float64Array(count), task: new Uint32Array(count) };
      for (let [index, time] = [0, 0]; index < count; index++) {
        row.start[index] = time += runs.next();
        row.end[index] = time += runs.next();
        row.task[index] = runs.next();
      }
      return row;
    });
    const overview = new Numbers(packed.overview);
    this.cells = Math.max(1, Math.ceil(this.end / this.cell));
    const total = this.cells * this.cpus;
    this.busy = new Uint8Array(total);
    this.share = new Uint8Array(total);
    this.task = new Uint32Array(total);
    for (let index = 0; index < total; index++) {
      this.busy[index] = overview.next();
      if (this.busy[index] > 0) [this.share[index], this.task[index]] = [overview.next(), overview.next()];
    }
  }
  isWhole() {
    return this.exact[0] === 0 && this.exact[1] >= this.end;
  }
  /** The index of the first interval of a row that ends after `time`. */
  static after(row, time) {
    let [low, high] = [0, row.end.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.end[middle] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }
  /** What ran on a CPU at a time: an interval, a cell, or nothing. */
  at(cpu, time) {
    if (time < 0 || time >= this.end || cpu < 0 || cpu >= this.cpus) return null;
    if (time >= this.exact[0] && time < this.exact[1]) {
      const row = this.rows[cpu];
      const index = Run.after(row, time);
      return index < row.start.length && row.start[index] <= time ? { task: row.task[index], start: row.start[index], end: row.end[index] } : null;
    }
    const index = cpu * this.cells + Math.floor(time / this.cell);
    return this.busy[index] > 0 ? { task: this.task[index], cell: true, busy: this.busy[index] / 255, share: this.share[index] / 255 } : null;
  }
  /** The begin and end of the run of a task that comes after `time`, or before it: the nearest on any CPU in the exact window. */
  neighbour(task, time, forward) {
    let found = null;
    for (const row of this.rows) {
      let index = Run.after(row, time);
      if (forward) while (index < row.start.length && (row.task[index] !== task || row.start[index] <= time)) index++;
      else while (index >= 0 && (index >= row.start.length || row.task[index] !== task || row.start[index] >= time)) index--;
      if (index < 0 || index >= row.start.length) continue;
      const nearer = found === null || (forward ? row.start[index] < found[0] : row.start[index] > found[0]);
      if (nearer) found = [row.start[index], row.end[index]];
    }
    return found;
  }
  /** Nanoseconds per task, as the overview has them: of a cell the leading task's alone. */
  timeByTask(times) {
    for (let index = 0; index < this.busy.length; index++) {
      if (this.busy[index] > 0) times.set(this.task[index], (times.get(this.task[index]) ?? 0) + (this.busy[index] * this.share[index] * this.cell) / 65025);
    }
  }
}

/** The timelines of all runs on one number of CPUs, below each other on the same axis. */
function drawTimelines({ timelines, tasks }) {
  const byId = (id) => document.getElementById(id);
  const runs = timelines.map((packed) => new Run(packed));
  const simulated = runs.filter((run) => run.policy !== "recorded");
  const counts = [...new Set((simulated.length ? simulated : runs).map((run) => run.cpus))];
  const longest = Math.max(...runs.map((run) => run.end));
  const exact = runs[0].isWhole() ? [0, longest] : runs[0].exact;
  const label = (task) => `${tasks[task][0]} (${tasks[task][1]})`;
  let [cpus, view, highlighted, kept, plots, colors, shown, moment] = [counts[0], exact, null, null, [], [], [], null];

  /** Highlights a task, or the one that is kept. */
  function highlight(task) {
    task ??= kept;
    if (task === highlighted) return;
    highlighted = task;
    plots.forEach((plot) => plot.redraw(false));
    document.querySelectorAll("#timeline-tasks button").forEach((button) => button.setAttribute("aria-pressed", String(Number(button.dataset.task) === task)));
  }

  function paint(u, run) {
    const { ctx, bbox } = u;
    const [from, to] = [u.scales.x.min, u.scales.x.max];
    const scale = bbox.width / (to - from);
    const x = (time) => bbox.left + (time - from) * scale;
    const height = bbox.height / run.cpus;
    const gap = height > 6 ? devicePixelRatio : 0;
    const rectangle = (start, end, top, tall) => ctx.fillRect(x(start), top, (end - start) * scale, tall);
    const ink = (task, faint) => {
      ctx.globalAlpha = (highlighted === null || highlighted === task ? 1 : 0.12) * faint;
      ctx.fillStyle = colors[task];
    };
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const sampled = (start, end) => {
      [start, end] = [Math.max(start, from, 0), Math.min(end, to, run.end)];
      if (start >= end) return;
      [ctx.globalAlpha, ctx.fillStyle] = [1, css("--sampled")];
      rectangle(start, end, bbox.top, bbox.height);
      for (let cpu = 0; cpu < run.cpus; cpu++) {
        const bottom = bbox.top + (cpu + 1) * height - gap;
        for (let index = Math.floor(start / run.cell); index < run.cells && index * run.cell < end; index++) {
          const cell = cpu * run.cells + index;
          if (run.busy[cell] === 0) continue;
          ink(run.task[cell], 0.75);
          const tall = ((height - gap) * run.busy[cell]) / 255;
          rectangle(Math.max(start, index * run.cell), Math.min(end, (index + 1) * run.cell), bottom - tall, tall);
        }
      }
    };
    const [first, last] = run.exact[1] > run.exact[0] ? run.exact : [run.end, run.end];
    sampled(0, first);
    sampled(last, run.end);
    const [start, end] = [Math.max(first, from), Math.min(last, to)];
    run.rows.forEach((row, cpu) => {
      const top = bbox.top + cpu * height;
      // Intervals within one column of pixels are drawn as one, of the task with the longest or the highlighted one.
      let [column, busy, longest, lead] = [NaN, 0, 0, 0];
      const together = () => {
        if (busy > 0) { ink(lead, 1); ctx.fillRect(column, top, busy * scale, height - gap); }
        busy = longest = 0;
      };
      for (let index = Run.after(row, start); index < row.start.length && row.start[index] < end; index++) {
        const [begin, stop, task] = [Math.max(row.start[index], start), Math.min(row.end[index], end), row.task[index]];
        const at = Math.floor(x(begin));
        if (x(stop) > at + 1) { ink(task, 1); rectangle(begin, stop, top, height - gap); continue; }
        if (at !== column) { together(); column = at; }
        busy += stop - begin;
        const weight = task === highlighted ? Infinity : stop - begin;
        if (weight > longest) [longest, lead] = [weight, task];
      }
      together();
    });
    ctx.globalAlpha = 1;
    ctx.restore();
  }

  function point(u, run) {
    const { left, top } = u.cursor;
    if (left < 0 || top < 0) return;
    const time = u.posToVal(left, "x");
    const cpu = Math.floor((top / u.over.clientHeight) * run.cpus);
    const found = run.at(cpu, time);
    if (u.over.matches(":hover")) showMoment(time);
    if (!u.over.matches(":hover")) return; // another plot's cursor, which this one follows
    const place = `${run.policy}, CPU ${cpu}, ${duration(time, 6)}`;
    if (found === null) byId("timeline-what").textContent = `${place}: idle`;
    else if (found.cell) byId("timeline-what").textContent = `${place}: busy for ${Math.round(100 * found.busy)} % of these ${duration(run.cell)}, ${Math.round(100 * found.share)} % of that ${label(found.task)}`;
    else byId("timeline-what").textContent = `${place}: ${label(found.task)} from ${duration(found.start, 9)} for ${duration(found.end - found.start, 6)}`;
    highlight(found === null ? null : found.task);
  }

  function plot(run, place) {
    const row = run.cpus <= 8 ? 20 : run.cpus <= 64 ? 7 : 2;
    const every = Math.ceil(12 / row);
    const split = Array.from({ length: Math.ceil(run.cpus / every) }, (_, index) => index * every + 0.5);
    return new uPlot({
      width: place.clientWidth, height: row * run.cpus + 30, legend: { show: false }, padding: [0, 12, 0, 0],
      cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: "timelines", scales: ["x", null] }, points: { show: false }, y: false },
      scales: { x: { time: false, range: () => view }, y: { range: [0, run.cpus], dir: -1 } },
      series: [{}, { show: false }],
      axes: [
        axis({ size: 26, values: (u, times) => { const step = Math.abs(times[1] - times[0]) || 1; return times.map((time) => duration(time, Math.max(3, Math.ceil(Math.log10(Math.max(time, 1) / step)) + 1))); } }),
        axis({ size: 60, splits: () => split, values: (_, splits) => splits.map((y) => `CPU ${y - 0.5}`), grid: { show: false }, gap: 2 }),
      ],
      hooks: {
        draw: [(u) => paint(u, run)],
        setCursor: [(u) => point(u, run)],
        setSelect: [(u) => {
          if (u.select.width < 2) return;
          const [from, to] = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          show([from, to]);
        }],
      },
    }, [[0, longest], [0, 0]], place);
  }

  /** What runs at a time under every policy, CPU by CPU: a table, a row for each run. */
  function showMoment(time) {
    moment = Math.min(Math.max(time, 0), longest);
    const [table, head, body] = ["table", "thead", "tbody"].map((name) => document.createElement(name));
    const most = Math.min(16, Math.max(...shown.map((run) => run.cpus)));
    const cell = (name, text, scope) => { const one = document.createElement(name); if (scope) one.scope = scope; one.append(text); return one; };
    table.createCaption().textContent = `At ${duration(moment, 6)}`;
    head.insertRow().append(cell("th", "policy", "col"), ...Array.from({ length: most }, (_, cpu) => cell("th", `CPU ${cpu}`, "col")));
    for (const run of shown) {
      const row = body.insertRow();
      row.append(cell("th", run.policy, "row"));
      for (let cpu = 0; cpu < most; cpu++) {
        const found = run.at(cpu, moment);
        const one = cell("td", cpu >= run.cpus ? "" : moment >= run.end ? "ended" : found === null ? "idle" : found.cell ? `mostly ${label(found.task)}` : label(found.task));
        if (found !== null) { const swatch = document.createElement("i"); swatch.className = "swatch"; swatch.style.background = colors[found.task]; one.prepend(swatch); }
        row.append(one);
      }
    }
    table.append(head, body);
    byId("timeline-moment").replaceChildren(table);
  }

  /** Shows a part of the time axis. */
  function show([from, to]) {
    const least = 10;
    if (to - from < least) to = from + least;
    [from, to] = [Math.max(0, from), Math.min(longest, to)];
    view = from < to ? [from, to] : [0, longest];
    [byId("timeline-from").value, byId("timeline-to").value] = view.map((time) => duration(Math.round(time), 12));
    byId("timeline-error").textContent = "";
    plots.forEach((plot) => plot.setScale("x", { min: view[0], max: view[1] }));
    showMoment((view[0] + view[1]) / 2);
  }

  /** Keeps a task highlighted, or none. */
  function keep(task) {
    kept = task;
    highlighted = undefined;
    highlight(task);
  }

  /** Lists the tasks whose name or id has what is searched, those that ran longest first; a single one, or the first after Enter, is kept. */
  function search(take) {
    const text = byId("timeline-search").value.trim().toLowerCase();
    const found = listTasks(text);
    byId("timeline-found").textContent = text === "" ? "" : found.length === 0 ? "No task has that name or id." : `${counted(found.length, "task")}${found.length > 40 ? ", 40 of them below" : ""}`;
    keep(text !== "" && (found.length === 1 || (take && found.length > 0)) ? found[0] : null);
    if (take && kept !== null) step(true, -1);
  }

  /** Moves to the next or the previous run of the kept task under the first policy that has one. */
  function step(forward, from = moment) {
    if (kept === null) { byId("timeline-found").textContent = "Search for a task first, or press its name."; return; }
    const next = shown.map((run) => [run, run.neighbour(kept, from, forward)]).filter(([, found]) => found !== null)
      .sort((a, b) => (forward ? a[1][0] - b[1][0] : b[1][0] - a[1][0]))[0];
    if (!next) { byId("timeline-found").textContent = `${label(kept)} has no ${forward ? "later" : "earlier"} run in the exact window.`; return; }
    const [run, [begin, end]] = next;
    const width = view[1] - view[0];
    if (begin < view[0] || end > view[1]) show([begin - width / 2, begin + width / 2]);
    showMoment(begin);
    byId("timeline-found").textContent = `${label(kept)} under ${run.policy}: from ${duration(begin, 9)} for ${duration(end - begin, 6)}`;
  }

  /** Shows what the fields say, or says what is wrong with them. */
  function showFields() {
    const scales = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
    const parse = (text) => { const match = /^\s*([0-9]*\.?[0-9]+)\s*(ns|us|ms|s)\s*$/.exec(text === "0" ? "0ns" : text); return match ? match[1] * scales[match[2]] : NaN; };
    const [from, to] = [parse(byId("timeline-from").value), parse(byId("timeline-to").value)];
    const wrong = Number.isNaN(from) || Number.isNaN(to) ? "Write times with a unit, as in 1.5ms."
      : from >= to ? "The window ends before it begins."
      : from >= longest ? `That is outside the runs, the longest of which lasts ${duration(longest)}.` : "";
    if (wrong) byId("timeline-error").textContent = wrong;
    else show([from, to]);
  }

  function draw() {
    colors = tasks.map((_, index) => color(index));
    shown = runs.filter((run) => run.cpus === cpus || run.policy === "recorded");
    plots.forEach((plot) => plot.destroy());
    byId("timelines").replaceChildren();
    plots = shown.map((run) => {
      const place = document.createElement("div");
      place.className = "timeline";
      place.append(Object.assign(document.createElement("h3"), { textContent: `${run.policy}${run.policy === "recorded" ? ` on ${counted(run.cpus, "CPU")}` : ""}: ${duration(run.end)}` }));
      byId("timelines").append(place);
      const u = plot(run, place);
      u.over.addEventListener("mouseleave", () => { highlight(null); byId("timeline-what").textContent = "\u00a0"; });
      u.over.addEventListener("dblclick", () => show([0, longest]));
      return u;
    });
    const parts = shown.filter((run) => !run.isWhole());
    const cells = [...new Set(parts.map((run) => duration(run.cell)))].join(" or ");
    byId("timeline-note").textContent = parts.length === 0
      ? "Every interval of every run is drawn."
      : `Down-sampled: ${parts.map((run) => `${run.policy} is exact from ${duration(run.exact[0], 5)} to ${duration(run.exact[1], 5)} (${run.shown} of ${run.intervals} intervals)`).join("; ")}. Elsewhere, on grey, a cell stands for ${cells}: it is as high as the CPU was busy and has the colour of the task that ran longest in it. For another window: schedlab report DIR --window FROM..TO`;
    search(false);
    show(view);
  }

  /** Lists the tasks that have `text` in their labels, and returns all of them. */
  function listTasks(text) {
    const times = new Map(tasks.map((_, task) => [task, 0]));
    shown.forEach((run) => run.timeByTask(times));
    const found = [...times].filter(([task]) => label(task).toLowerCase().includes(text)).sort((a, b) => b[1] - a[1]).map(([task]) => task);
    byId("timeline-tasks").replaceChildren(...found.slice(0, 40).map((task) => {
      const [item, button, swatch] = ["li", "button", "i"].map((name) => document.createElement(name));
      swatch.className = "swatch";
      swatch.style.background = colors[task];
      button.type = "button";
      button.dataset.task = task;
      button.setAttribute("aria-pressed", "false");
      button.append(swatch, label(task));
      for (const begin of ["focus", "mouseenter"]) button.addEventListener(begin, () => highlight(task));
      for (const end of ["blur", "mouseleave"]) button.addEventListener(end, () => highlight(null));
      button.addEventListener("click", () => keep(kept === task ? null : task));
      item.append(button);
      return item;
    }));
    return found;
  }

  const zoom = (factor) => { const [middle, half] = [(view[0] + view[1]) / 2, ((view[1] - view[0]) / 2) * factor]; show([middle - half, middle + half]); };
  const move = (share) => { const step = Math.max(-view[0], Math.min(longest - view[1], (view[1] - view[0]) * share)); show([view[0] + step, view[1] + step]); };
  const buttons = { show: showFields, in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.5), right: () => move(0.5), exact: () => show(exact), all: () => show([0, longest]) };
  for (const [name, act] of Object.entries(buttons)) byId(`timeline-${name}`).addEventListener("click", act);
  const keys = {
    ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "−": () => zoom(2),
    Home: () => show([0, longest]), n: () => step(true), N: () => step(true), p: () => step(false), P: () => step(false), Escape: () => keep(null),
  };
  byId("timelines").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    byId("timeline-what").textContent = `From ${duration(view[0], 6)} to ${duration(view[1], 6)}`;
  });
  byId("timeline-search").addEventListener("input", () => search(false));
  byId("timeline-search").addEventListener("keydown", (event) => event.key === "Enter" && search(true));
  byId("timeline-next").addEventListener("click", () => step(true));
  byId("timeline-previous").addEventListener("click", () => step(false));
  for (const name of ["from", "to"]) byId(`timeline-${name}`).addEventListener("keydown", (event) => event.key === "Enter" && showFields());
  choice("timeline-cpus", counts.map((count) => [count, counted(count, "CPU")]), (value) => { cpus = Number(value); draw(); });
  const resize = () => plots.forEach((plot) => plot.setSize({ width: byId("timelines").clientWidth, height: plot.height }));
  return { draw, resize, state: () => ({ view, highlighted, kept, moment, cpus }) };
}
