/** The figures of a paper: our curves on the left axis, the printed numbers as circles on the right one. */
function drawFigures(figures) {
  const drawn = figures.filter((figure) => figure.curves.length > 0);
  const place = (figure) => document.querySelector(`#${figure.id} .plot`);
  const number = (value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(4))));
  const fromZero = (_, __, max) => [0, Math.max(max, 1) * 1.08];
  let plots = [];
  function plot(figure) {
    const all = figure.overhead ? [...figure.curves, figure.overhead] : figure.curves;
    const tasks = [...new Set(all.flatMap((curve) => curve.tasks))].sort((a, b) => a - b);
    const aligned = (curve, values) => tasks.map((x) => values[curve.tasks.indexOf(x)] ?? null);
    const [series, data, bands] = [[{ label: "tasks", value: (_, x) => number(x) }], [tasks], []];
    const add = (one, values) => { series.push({ spanGaps: true, value: (_, y) => number(y), ...one }); data.push(values); };
    all.forEach((curve, index) => {
      const [stroke, dash] = curve === figure.overhead ? [css("--soft"), [8, 5]] : [color(index), undefined];
      add({ label: curve.name, scale: "ours", stroke, dash, width: 2, points: { show: !dash, size: 5, fill: stroke } }, aligned(curve, curve.value));
      if (curve.ci_low.some((value) => value !== null)) {
        const border = { scale: "ours", stroke, width: 0.5, points: { show: false }, class: "interval" };
        add({ ...border, label: `${curve.name} low` }, aligned(curve, curve.ci_low));
        add({ ...border, label: `${curve.name} high` }, aligned(curve, curve.ci_high));
        bands.push({ series: [data.length - 1, data.length - 2], fill: stroke.replace(")", " / 18%)") });
      }
      if (curve.printed.some((value) => value !== null)) {
        add({ label: `${curve.name}, printed`, scale: "printed", stroke, paths: () => null, points: { show: true, size: 8, width: 1.5, fill: css("--back") } }, aligned(curve, curve.printed));
      }
    });
    const where = place(figure);
    where.replaceChildren();
    const result = new uPlot({
      width: where.clientWidth, height: 300, series, bands,
      scales: { x: { time: false }, ours: { range: fromZero }, printed: { range: fromZero } },
      axes: [axis({ label: "tasks", labelSize: 20 }), axis({ scale: "ours", size: 60 }), axis({ scale: "printed", side: 1, size: 60, grid: { show: false } })],
    }, data, where);
    result.root.querySelectorAll(".u-series").forEach((row, index) => series[index]?.class && row.classList.add(series[index].class));
    return result;
  }
  return {
    draw: () => { plots = drawn.map(plot); },
    resize: () => plots.forEach((one, index) => one.setSize({ width: place(drawn[index]).clientWidth, height: 300 })),
  };
}
