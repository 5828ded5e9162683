// Tables of an answer that a reader can sort by any column; loaded when an answer has one.
import { element } from "./core.js";
import { language, say } from "./texts.js";

// Pure: the number that a cell begins with, or NaN; the last of two kinds of separators divides the fraction.
export function numberOf(text) {
  const digits = text.match(/^[^\d\-−+]{0,3}([-−+]?)\s*(\d[\d.,\s'’]*)/);
  if (!digits) return NaN;
  let plain = digits[2].replace(/[\s'’]/g, "").replace(/[.,]+$/, "");
  const last = Math.max(plain.lastIndexOf("."), plain.lastIndexOf(",")), isGrouped = /^\d{1,3}(,\d{3})+$|^\d{1,3}(\.\d{3}){2,}$/.test(plain);
  plain = isGrouped || last < 0 ? plain.replace(/[.,]/g, "") : `${plain.slice(0, last).replace(/[.,]/g, "")}.${plain.slice(last + 1)}`;
  return Number(plain) * (/[-−]/.test(digits[1]) ? -1 : 1);
}

// Pure: the order of rows by the texts of one column; numbers by their size where most are numbers, and empty cells last.
export function orderOf(texts, isDescending) {
  const numbers = texts.map(numberOf), isNumeric = numbers.filter((n) => !Number.isNaN(n)).length * 2 > texts.filter(Boolean).length;
  const compare = new Intl.Collator(language(), { numeric: true }).compare, isEmpty = (i) => (isNumeric ? Number.isNaN(numbers[i]) : !texts[i]);
  return texts.map((_, i) => i).sort((a, b) => isEmpty(a) - isEmpty(b) || (isEmpty(a) ? 0 : (isNumeric ? numbers[a] - numbers[b] : compare(texts[a], texts[b])) * (isDescending ? -1 : 1)) || a - b);
}

const cellText = (cell) => {
  const copy = cell?.cloneNode(true);
  for (const mark of copy?.querySelectorAll(".cite, .check") || []) mark.remove();
  return copy?.textContent.trim() || "";
};

export function makeSortable(table) {
  const body = table.tBodies[0], heads = [...(table.tHead?.rows[0]?.cells || [])];
  if (!body || body.rows.length < 2) return;
  heads.forEach((head, column) => {
    const name = cellText(head), sort = element("button", { type: "button", className: "sort", title: say("table.sort", { name }) });
    sort.append(...head.childNodes);
    if (!name) return head.append(...sort.childNodes);
    sort.onclick = () => {
      const isDescending = head.getAttribute("aria-sort") === "ascending", rows = [...body.rows];
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
      body.append(...orderOf(rows.map((row) => cellText(row.cells[column])), isDescending).map((i) => rows[i]));
    };
    head.append(sort);
  });
}
