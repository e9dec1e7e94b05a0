"use strict";

/** Makes the headings of tables sort them: numbers by value, a second time the other way round. Rows without a value stay last. */
function makeSortable(table) {
  const body = table.tBodies[0];
  const value = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value !== undefined) return Number.isNaN(Number(cell.dataset.value)) ? cell.dataset.value : Number(cell.dataset.value);
    return cell.classList.contains("number") ? undefined : cell.textContent;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [value(row, column), row]);
      const missing = rows.filter(([value]) => value === undefined);
      const sorted = rows.filter(([value]) => value !== undefined).sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
      body.append(...[...sorted, ...missing].map(([, row]) => row));
    });
  });
}
