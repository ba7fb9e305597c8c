// Tables: sorted by a button in each header, filtered by words, long ones folded. Without this script every table
// stands whole in the study's order.
const FOLD = 50; // rows that a table shows before it is unfolded
const collator = new Intl.Collator("en", { numeric: true });

const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

// A cell's number, or its text; null where there is nothing.
const key = (cell) => {
  const text = cell.textContent.trim(), value = cell.dataset.value;
  if (value !== undefined) return value === "" || Number.isNaN(Number(value)) ? null : Number(value);
  return text === "" || text === "–" ? null : text;
};

// What is missing comes last whichever way the table is sorted.
const compare = (a, b, sign) => {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * collator.compare(a, b);
};

const enhance = (table, number) => {
  const body = table.tBodies[0], all = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const frame = table.closest(".scroll") ?? table;
  const texts = all.map((row) => row.textContent.toLowerCase());
  let order = all.map((_, place) => place), words = [], unfolded = false, sorting = "";

  table.id ||= `table-${number + 1}`;
  const name = frame.getAttribute("aria-label") ?? "table";
  const box = make("input", { type: "search", autocomplete: "off" });
  box.setAttribute("aria-label", `Filter: ${name}`);
  box.setAttribute("aria-controls", table.id);
  const count = make("output", { className: "count" });
  count.setAttribute("aria-live", "polite");
  const fold = make("button", { type: "button" });
  fold.setAttribute("aria-controls", table.id);
  const tools = make("div", { className: "tools" }, make("label", {}, "Filter ", box), count, fold);
  if (all.length > 1) frame.before(tools);

  const show = () => {
    const found = order.filter((place) => words.every((word) => texts[place].includes(word)));
    const folds = found.length > FOLD, limit = unfolded ? Infinity : FOLD, kept = new Set(found);
    all.forEach((row, place) => { row.hidden = !kept.has(place); });
    found.forEach((place, turn) => all[place].classList.toggle("folded", turn >= limit));
    const folded = folds && !unfolded ? `, the first ${FOLD} shown` : "";
    const of = words.length ? `${found.length} of ${all.length} rows match` : `${all.length} rows`;
    count.textContent = of + folded + sorting;
    tools.classList.toggle("filtered", words.length > 0);
    fold.hidden = !folds;
    fold.textContent = unfolded ? `Show the first ${FOLD}` : `Show all ${found.length}`;
    fold.setAttribute("aria-expanded", String(unfolded));
  };

  const sort = (head, column) => {
    const state = { ascending: "descending", descending: "" }[head.getAttribute("aria-sort")] ?? "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    order = all.map((_, place) => place);
    sorting = "";
    if (state) {
      head.setAttribute("aria-sort", state);
      const keys = all.map((row) => key(row.cells[column])), sign = state === "ascending" ? 1 : -1;
      order.sort((a, b) => compare(keys[a], keys[b], sign));
      sorting = `, by ${head.textContent.trim()}, ${state}`;
    }
    body.append(...order.map((place) => all[place]));
    show();
  };

  heads.forEach((head, column) => {
    const button = make("button", { type: "button" }, ...head.childNodes);
    button.addEventListener("click", () => sort(head, column));
    head.append(button);
  });
  box.addEventListener("input", () => {
    words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    show();
  });
  fold.addEventListener("click", () => { unfolded = !unfolded; show(); });
  show();
};

document.querySelectorAll("table.sortable").forEach(enhance);

// The results lie beside the page in results/<study>/report; where it was moved alone, links to them lead nowhere.
if (!location.pathname.endsWith("/report/index.html")) {
  document.querySelectorAll('a[href^="../"]').forEach((link) => {
    link.replaceWith(make("span", { title: `${link.getAttribute("href").slice(3)} in the study's results` }, ...link.childNodes));
  });
}

// Paper cannot be unfolded.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
