// Headings become buttons that sort the table; each press turns the order round.
addEventListener("error", event => { document.documentElement.dataset.error = event.message; });
for (const head of document.querySelectorAll("thead th")) {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const rises = head.getAttribute("aria-sort") !== "ascending";
    const body = head.closest("table").tBodies[0];
    const key = row => {
      const cell = row.cells[head.cellIndex];
      return cell.dataset.by === undefined ? cell.textContent : Number(cell.dataset.by);
    };
    const compare = (a, b) => typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
    const rows = Array.from(body.rows, row => [key(row), row]);
    rows.sort((a, b) => rises ? compare(a[0], b[0]) : compare(b[0], a[0]));
    body.append(...rows.map(([, row]) => row));
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", rises ? "ascending" : "descending");
  });
}
document.documentElement.dataset.ready = "yes";
