// Long tables of a page: a click on a head sorts, a field above filters, and of very long ones
// the first rows are shown, with a button for the others. Without this script the tables are
// whole, in the order in which they were made.
(() => {
  "use strict";
  const SORTED = 5, FILTERED = 16, FOLDED = 24; // from how many rows a table has which

  // "85.90 [83.74, 88.02]", "1,024" and "+0.5" sort by their first number, all else as text.
  const key = (cell) => {
    const text = cell ? cell.textContent.trim() : "";
    const number = /^[-+−]?[\d,]*\.?\d+/.exec(text);
    return number ? Number(number[0].replace(/,/g, "").replace("−", "-")) : text.toLowerCase();
  };

  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === ""); // empty cells stay below
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };

  const sortable = (table, rows) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "rr-sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
        const sign = order === "ascending" ? 1 : -1;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const keyed = rows.map((row) => [key(row.cells[column]), row]);
        keyed.sort(([a], [b]) => (a === "" || b === "" ? compare(a, b) : sign * compare(a, b)));
        table.tBodies[0].append(...keyed.map(([, row]) => row));
      });
    });
  };

  const filterable = (table, rows) => {
    const box = document.createElement("div");
    box.className = "rr-filter";
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "Filter rows";
    field.setAttribute("aria-label", "Show only rows that hold all these words");
    const count = document.createElement("span");
    count.setAttribute("aria-live", "polite");
    box.append(field, count);
    const scroller = table.closest(".pst-scrollable-table-container, .rr-table") || table;
    scroller.before(box);
    const texts = rows.map((row) => row.textContent.toLowerCase());
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, i) => {
        row.hidden = !words.every((word) => texts[i].includes(word));
        shown += !row.hidden;
      });
      count.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
    });
  };

  // The first dozen rows (the style sheet's rule of .rr-first); any search, and the button, opens.
  const foldable = (table, rows) => {
    const scroller = table.closest(".pst-scrollable-table-container, .rr-table") || table;
    const all = document.createElement("button");
    all.type = "button";
    all.className = "rr-all";
    all.textContent = `Show all ${rows.length} rows`;
    const open = () => {
      table.classList.remove("rr-first");
      all.remove();
    };
    all.addEventListener("click", open);
    const field = scroller.previousElementSibling;
    if (field && field.matches(".rr-filter")) field.addEventListener("input", open, { once: true });
    table.classList.add("rr-first");
    scroller.after(all);
  };

  document.addEventListener("DOMContentLoaded", () => {
    for (const table of document.querySelectorAll("article table")) {
      if (!table.tHead || table.tHead.rows.length !== 1 || table.tBodies.length !== 1) continue;
      const rows = [...table.tBodies[0].rows];
      // A row that begins with nothing goes on with the one above it: their order has a sense.
      if (rows.some((row) => !row.cells[0].textContent.trim())) continue;
      if (rows.length >= SORTED) sortable(table, rows);
      if (rows.length >= FILTERED) filterable(table, rows);
      if (rows.length >= FOLDED && !table.closest(".rr-ledger")) foldable(table, rows);
    }
  });
})();
