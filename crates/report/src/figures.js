/** Draws each figure of a paper into its place: curves with intervals, printed numbers as circles on the axis at the right, and what the text says as dashed lines. */
function drawFigures(figures) {
  const places = [...document.querySelectorAll("[data-figure]")];
  let plots = [];
  const number = (value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(4))));

  const fromZero = (_, __, max) => [0, Math.max(max, 1) * 1.08];

  /** The lines of what the text says. */
  const marks = (figure) => (u) => {
    const { left, top, width, height } = u.bbox;
    u.ctx.save();
    Object.assign(u.ctx, { strokeStyle: css("--soft"), fillStyle: css("--front"), lineWidth: devicePixelRatio, font: `${11 * devicePixelRatio}px sans-serif` });
    u.ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
    figure.marks.forEach((mark, index) => {
      const [x, y] = [mark.x === null ? null : u.valToPos(mark.x, "x", true), mark.y === null ? null : u.valToPos(mark.y, "y", true)];
      if ((x !== null && (x < left || x > left + width)) || (y !== null && (y < top || y > top + height))) return;
      u.ctx.beginPath();
      u.ctx.moveTo(x ?? left, y ?? top);
      u.ctx.lineTo(x ?? left + width, y ?? top + height);
      u.ctx.stroke();
      const right = x !== null && x > left + width / 2;
      u.ctx.textAlign = right ? "right" : "left";
      u.ctx.fillText(mark.text, (x ?? left) + (right ? -5 : 5) * devicePixelRatio, y === null ? top + (12 + 13 * index) * devicePixelRatio : y - 4 * devicePixelRatio);
    });
    u.ctx.restore();
  };

  function plot(place, figure) {
    const xs = [...new Set(figure.curves.flatMap((curve) => curve.points.map((point) => point.x)))].sort((a, b) => a - b);
    const column = (curve, key) => {
      const at = new Map(curve.points.map((point) => [point.x, point[key]]));
      return xs.map((x) => at.get(x) ?? null);
    };
    const series = [{ label: figure.x.label, value: (_, x) => number(x) }];
    const [data, bands] = [[xs], []];
    const printed = figure.curves.some((curve) => curve.points.some((point) => point.printed !== null));
    figure.curves.forEach((curve, index) => {
      const stroke = color(index);
      series.push({ label: curve.name, stroke, width: 2, spanGaps: true, dash: curve.dashed ? [6, 4] : undefined, points: { show: xs.length < 60, size: 5 }, value: (_, y) => number(y) });
      data.push(column(curve, "value"));
      if (curve.points.some((point) => point.low !== null)) {
        const border = { stroke, width: 1, dash: [2, 3], spanGaps: true, points: { show: false }, class: "interval" };
        series.push({ ...border, label: `${curve.name} low` }, { ...border, label: `${curve.name} high` });
        data.push(column(curve, "low"), column(curve, "high"));
        bands.push({ series: [data.length - 1, data.length - 2], fill: stroke.replace(")", " / 18%)") });
      }
      if (curve.points.some((point) => point.printed !== null)) {
        series.push({ label: `${curve.name}, printed`, scale: "printed", stroke, paths: () => null, points: { show: true, size: 8, width: 1.5, fill: css("--back") }, value: (_, y) => number(y) });
        data.push(column(curve, "printed"));
      }
    });
    const scale = (one) => (one.log ? { distr: 3, log: 10 } : {});
    const upwards = figure.y.zoom ? {} : { range: fromZero };
    const ticks = (one, more) => axis({ ...more, label: one.label, labelSize: 18, ...(one.log ? { splits: decades, values: (_, values) => values.map((value) => (value === null ? "" : number(value))) } : {}) });
    place.replaceChildren();
    const drawn = new uPlot({
      width: place.clientWidth, height: 300, series, bands,
      scales: { x: { time: false, ...scale(figure.x) }, y: printed ? upwards : scale(figure.y), ...(printed ? { printed: upwards } : {}) },
      axes: [ticks(figure.x, {}), ticks(figure.y, { size: 60 }), ...(printed ? [axis({ scale: "printed", side: 1, size: 60, label: "printed", labelSize: 18, grid: { show: false } })] : [])],
      hooks: { draw: [marks(figure)] }, legend: { live: true },
    }, data, place);
    drawn.root.querySelectorAll(".u-series").forEach((row, index) => series[index]?.class && row.classList.add(series[index].class));
    named(drawn, `${figure.y.label} by ${figure.x.label}: ${figure.curves.map((curve) => curve.name).join(", ")}`);
    return drawn;
  }

  return {
    draw: () => { plots = places.map((place) => plot(place, figures[place.dataset.figure])); },
    resize: () => plots.forEach((one, index) => one.setSize({ width: places[index].clientWidth, height: 300 })),
  };
}
