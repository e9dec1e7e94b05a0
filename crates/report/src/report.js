{
  const data = JSON.parse(document.getElementById("data").textContent);
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  const parts = [];
  if (data.curves.length > 0) parts.push(drawCurves(data.curves));
  if (data.charts.length > 0) parts.push(drawCharts(data.charts));
  if (document.querySelector("[data-figure]")) parts.push(drawFigures(data.figures));
  if (data.timelines.timelines.length > 0) parts.push(drawTimelines(data.timelines));
  const drawAll = () => parts.forEach((part) => part.draw());
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("resize", () => parts.forEach((part) => part.resize()));
  globalThis.schedlabReport = { timelines: parts.find((part) => part.state)?.state };
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
