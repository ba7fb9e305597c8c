// Tables: sorted by a button in each header, filtered by words, long ones folded. Without this script every table
// stands whole in the study's order. Only rows that are shown are elements: thousands of them are slow.
const FOLD = 50; // rows that a table shows before it is unfolded
const MORE = 500; // rows that one press unfolds
const PAPER = 2000; // rows of a table that are printed at most
const collator = new Intl.Collator("en", { numeric: true });

const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

const SIGNS = { "&lt;": "<", "&gt;": ">", "&#34;": '"', "&quot;": '"', "&#39;": "'", "&nbsp;": " ", "&amp;": "&" };
const words_of = (html) => html.replace(/<[^>]*>/g, " ").replace(/&[#a-z0-9]+;/g, (sign) => SIGNS[sign] ?? sign);

// The number, or the text, of a cell of a row's HTML; null where there is nothing.
const key = (html, column) => {
  const cell = html.match(/<t[hd]\b[^]*?<\/t[hd]>/g)[column], value = /^[^>]* data-value="([^"]*)"/.exec(cell)?.[1];
  if (value !== undefined) return value === "" || Number.isNaN(Number(value)) ? null : Number(value);
  const text = words_of(cell).trim();
  return text === "" || text === "–" ? null : text;
};

// What is missing comes last whichever way the table is sorted.
const compare = (a, b, sign) => {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * collator.compare(a, b);
};

// The table's rows: elements, and of long tables the later ones as the HTML that stands beside it.
const rows_of = (body, frame) => {
  const beside = frame.nextElementSibling, later = beside?.matches("noscript.later") ? beside.textContent : "";
  const html = later.slice(later.indexOf("<tbody>")).match(/<tr\b[^]*?<\/tr>/g) ?? [];
  return [...[...body.rows].map((row) => ({ row })), ...html.map((text) => ({ html: text }))];
};

const draw = (body, rows) => {
  const made = document.createElement("template"), undrawn = rows.filter((one) => !one.row);
  made.innerHTML = undrawn.map((one) => one.html).join("");
  [...made.content.children].forEach((row, turn) => { undrawn[turn].row = row; });
  body.replaceChildren(...rows.map((one) => one.row));
};

const enhance = (table, number) => {
  const frame = table.closest(".scroll") ?? table, heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0], all = rows_of(body, frame), html = (one) => one.html ?? one.row.outerHTML;
  let order = [...all], words = [], limit = FOLD, left = 0, sorting = "";

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

  const holds = (one) => {
    one.text ??= words_of(html(one)).toLowerCase();
    return words.every((word) => one.text.includes(word));
  };

  const show = (most = limit) => {
    const found = words.length ? order.filter(holds) : order;
    left = found.length - most;
    draw(body, found.slice(0, most));
    const of = words.length ? `${found.length} of ${all.length} rows match` : `${all.length} rows`;
    count.textContent = of + (left > 0 ? `, the first ${most} shown` : "") + sorting;
    tools.classList.toggle("counted", words.length > 0 || left > 0);
    fold.hidden = found.length <= FOLD;
    fold.textContent = left <= 0 ? `Show the first ${FOLD}` : left > MORE ? `Show ${MORE} more` : `Show all ${found.length}`;
    fold.setAttribute("aria-expanded", String(limit > FOLD));
  };

  const sort = (head, column) => {
    const state = { ascending: "descending", descending: "" }[head.getAttribute("aria-sort")] ?? "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    order = [...all];
    sorting = "";
    if (state) {
      head.setAttribute("aria-sort", state);
      const keys = new Map(all.map((one) => [one, key(html(one), column)])), sign = state === "ascending" ? 1 : -1;
      order.sort((a, b) => compare(keys.get(a), keys.get(b), sign));
      sorting = `, by ${head.textContent.trim()}, ${state}`;
    }
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
  fold.addEventListener("click", () => {
    limit = left > 0 ? limit + MORE : FOLD;
    show();
  });
  show();
  return show;
};

const tables = [...document.querySelectorAll("table.sortable")].map(enhance);

// The results lie beside the page in results/<study>/report; where it was moved alone, links to them lead nowhere.
if (!/\/report\/(index\.html)?$/.test(location.pathname)) {
  document.querySelectorAll('a[href^="../"]').forEach((link) => {
    link.replaceWith(make("span", { title: `${link.getAttribute("href").slice(3)} in the study's results` }, ...link.childNodes));
  });
}

// A link into a folded part unfolds it.
const unfold = () => {
  const target = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  for (let one = target; one; one = one.parentElement) if (one.matches("details")) one.open = true;
  target?.scrollIntoView();
};
addEventListener("hashchange", unfold);
if (location.hash) unfold();

// Where one is: the menu marks the last part whose top is above the middle of the screen.
const marks = [...document.querySelectorAll('nav a[href^="#"]')].map((link) => [link, document.getElementById(link.hash.slice(1))]);
const mark = () => {
  const above = marks.filter(([, part]) => part && part.getBoundingClientRect().top < innerHeight / 2);
  marks.forEach(([link]) => link.removeAttribute("aria-current"));
  (above.at(-1) ?? marks[0])?.[0].setAttribute("aria-current", "true");
};
addEventListener("scroll", mark, { passive: true });
mark();

// Paper cannot be unfolded.
let opened = [];
addEventListener("beforeprint", () => {
  tables.forEach((show) => show(PAPER));
  opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => {
  tables.forEach((show) => show());
  opened.forEach((one) => { one.open = false; });
});
