// Values of documents by columns, each with its quote; read anew for each form that is saved. Its words come with its first opening.
import { $, call, element, problemOf, withToken } from "./core.js";
import { setPanelMessage } from "./panel.js";
import { isWeb, outside } from "./sources.js";
import { tell } from "./texts.js";

const FORMS = { md: "Markdown", csv: "CSV", xlsx: "XLSX", json: "JSON" };
let words = null;

const put = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

export async function fillTable() {
  if (words) return;
  words = await call("/page/table");
  $("table-head").textContent = words.head;
  const field = (id, label, more) => element("label", {}, element("span", { textContent: label }), element("textarea", { id, dir: "auto", required: true, ...more }));
  const go = element("button", { id: "table-go", className: "main", textContent: words.go });
  const stored = element("button", { id: "table-stored", type: "button", textContent: words.stored });
  const picker = element("input", { id: "table-files", type: "file", multiple: true });
  picker.setAttribute("aria-label", words.files);
  const form = element("form", { id: "table-form", autocomplete: "off" }, element("p", { className: "message", textContent: words.about }),
    field("table-columns", words.columns, { rows: 3, maxLength: 12000, placeholder: words.example }),
    field("table-documents", words.documents, { rows: 4, placeholder: "https://example.org/" }),
    element("p", { className: "tools" }, picker, " ", stored, " ", go));
  const message = element("p", { id: "table-message", className: "message" });
  message.setAttribute("role", "status");
  $("table").append(form, message, element("div", { id: "table-result" }));
  form.onsubmit = (event) => { event.preventDefault(); work(go, extract); };
  stored.onclick = () => work(stored, addStored);
  picker.onchange = () => work(go, () => upload(picker));
}

async function work(button, action) {
  button.disabled = true;
  try { await action(); } catch (error) { tell($("table-message"), error.message); }
  button.disabled = false;
}

const lines = (id) => $(id).value.split("\n").map((line) => line.trim()).filter(Boolean);

function addDocuments(addresses) { $("table-documents").value = [...new Set([...lines("table-documents"), ...addresses])].join("\n"); }

const listFiles = async (name, limit) => (await call(`/page/knowledge?limit=${limit}&q=${encodeURIComponent(name)}`)).sources.map((source) => source.url).filter((url) => url.startsWith("file:"));

async function addStored() {
  const files = await listFiles("file:", 100);
  addDocuments(files);
  setPanelMessage("table", files.length ? "" : words.none_stored);
}

async function upload(picker) {
  for (const file of picker.files) {
    setPanelMessage("table", put(words.reading, { name: file.name }));
    const { name } = await call(`/page/files?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
    addDocuments(await listFiles(name, 1)); // the last one that was stored comes first
  }
  picker.value = "";
  setPanelMessage("table", "");
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
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", words.head);
  const links = Object.keys(FORMS).map((form) => element("button", { type: "button", id: `table-${form}`, textContent: FORMS[form], onclick: (event) => work(event.currentTarget, () => save(asked, form)) }));
  const notes = [gap, ...rows.filter((row) => row.problem).map((row) => `${row.document}: ${row.problem}`)].filter(Boolean);
  $("table-result").replaceChildren(box, element("p", { className: "tools" }, words.save, " ", ...links.flatMap((link) => [link, " "])), ...notes.map((text) => tell(element("p", { className: "message" }), text)));
}

function rowOf(row) {
  const name = isWeb(row.url) ? outside(row.url, row.document) : element("span", { textContent: row.document, dir: "auto" });
  const head = element("th", { scope: "row" }, name, ...(row.date ? [element("p", { className: "state", textContent: row.date.slice(0, 10) })] : []));
  return element("tr", {}, head, ...row.cells.map((cell) => cellOf(cell, row.problem)));
}

function cellOf(cell, problem) {
  if (!cell.stated) return element("td", { className: "state", textContent: problem ? words.not_read : words.not_stated });
  const place = [cell.page && put(words.page, { n: cell.page }), cell.heading, cell.date].filter(Boolean).join(" · ");
  return element("td", { dir: "auto" }, element("strong", { textContent: cell.value }), element("p", { className: "passage", textContent: cell.quote, dir: "auto" }), ...(place ? [element("p", { className: "state", textContent: place, dir: "auto" })] : []));
}

async function save(asked, form) {
  const answer = await fetch("/v1/table", { method: "POST", headers: withToken({ "content-type": "application/json" }), body: JSON.stringify({ ...asked, format: form }) });
  if (!answer.ok) throw new Error(problemOf(await answer.json()));
  const link = element("a", { href: URL.createObjectURL(await answer.blob()), download: `nexi-table.${form}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
