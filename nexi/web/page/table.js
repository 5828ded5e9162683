// Values of documents by columns, each with its quote; read anew for each form that is saved. Its words come with its first opening.
import { $, call, element, problemOf, withToken } from "./core.js";
import { setPanelMessage } from "./panel.js";
import { remember, tell } from "./texts.js";

const FORMS = { md: "Markdown", csv: "CSV", xlsx: "XLSX", json: "JSON" };
let words = null;

export async function fillTable() {
  if (words) return;
  words = await call("/page/table");
  $("table-head").textContent = words.head;
  const field = (id, label, more) => element("label", {}, element("span", { textContent: label }), element("textarea", { id, dir: "auto", required: true, ...more }));
  const go = element("button", { id: "table-go", className: "main", textContent: words.go });
  const stored = element("button", { id: "table-stored", type: "button", textContent: words.stored });
  const form = element("form", {}, element("p", { className: "message", textContent: words.about }),
    field("table-columns", words.columns, { rows: 3, placeholder: words.example }),
    field("table-documents", words.documents, { rows: 4, placeholder: "https://example.org/" }),
    element("p", { className: "tools" }, stored, " ", go));
  const message = element("p", { id: "table-message", className: "message" });
  message.setAttribute("role", "status");
  $("table").append(form, message, element("div", { id: "table-result" }));
  form.onsubmit = (event) => { event.preventDefault(); work(go, extract); };
  stored.onclick = () => work(stored, addStored);
}

async function work(button, action) {
  button.disabled = true;
  try { await action(); } catch (error) { tell($("table-message"), error.message); }
  button.disabled = false;
}

const lines = (id) => $(id).value.split("\n").map((line) => line.trim()).filter(Boolean);

async function addStored() {
  const files = (await call("/page/knowledge?limit=100&q=file:")).sources.map((source) => source.url).filter((url) => url.startsWith("file:"));
  $("table-documents").value = [...new Set([...lines("table-documents"), ...files])].join("\n");
  setPanelMessage("table", files.length ? "" : words.none_stored);
}

async function extract() {
  const asked = { columns: lines("table-columns"), documents: lines("table-documents") };
  $("table-result").replaceChildren();
  setPanelMessage("table", words.working);
  const found = await call("/v1/table", { method: "POST", body: JSON.stringify(asked) });
  setPanelMessage("table", "");
  showTable(found, asked);
}

function showTable({ columns, rows, gap }, asked) {
  const head = element("tr", {}, ...[words.document, ...columns].map((name) => element("th", { scope: "col", textContent: name, dir: "auto" })));
  const box = element("div", { className: "scroll", tabIndex: 0 }, element("table", { id: "table-values" }, element("thead", {}, head), element("tbody", {}, ...rows.map(rowOf))));
  const links = Object.keys(FORMS).map((form) => element("button", { type: "button", id: `table-${form}`, textContent: FORMS[form], onclick: (event) => work(event.currentTarget, () => save(asked, form)) }));
  const notes = [gap, ...rows.filter((row) => row.problem).map((row) => `${row.document}: ${row.problem}`)].filter(Boolean);
  $("table-result").replaceChildren(box, element("p", { className: "tools" }, words.save, " ", ...links.flatMap((link) => [link, " "])), ...notes.map((text) => tell(element("p", { className: "message" }), text)));
}

function rowOf(row) {
  const head = element("th", { scope: "row", dir: "auto" }, row.document, element("p", { className: "state", textContent: row.date.slice(0, 10) }));
  return element("tr", {}, head, ...row.cells.map((cell) => cellOf(cell, row.problem)));
}

function cellOf(cell, problem) {
  if (!cell.stated) return element("td", { className: "state", textContent: problem ? words.not_read : words.not_stated });
  const place = [cell.page && words.page.replace("{n}", cell.page), cell.heading, cell.date].filter(Boolean).join(" · ");
  return element("td", { dir: "auto" }, element("strong", { textContent: cell.value }), element("p", { className: "passage", textContent: cell.quote }), element("p", { className: "state", textContent: place }));
}

async function save(asked, form) {
  const answer = await fetch("/v1/table", { method: "POST", headers: withToken({ "content-type": "application/json" }), body: JSON.stringify({ ...asked, format: form }) });
  if (!answer.ok) throw new Error(problemOf(remember(await answer.json())));
  const link = element("a", { href: URL.createObjectURL(await answer.blob()), download: `nexi-table.${form}` });
  link.click();
}
