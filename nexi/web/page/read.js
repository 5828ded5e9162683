// Reading and checking: the answer with its evidence, its conflicts, its sources and its exports.
import { $, addNote, call, element, problemOf, setStatus, showHint, withToken } from "./core.js";
import { setBars, setFinishedRun, state } from "./state.js";
import { draw } from "./timeline.js";

const FORMS = [["md", "Markdown"], ["html", "HTML"], ["pdf", "PDF"], ["json", "JSON"], ["ris", "RIS"], ["bibtex", "BibTeX"], ["csl", "CSL"]];
const SUFFIXES = { bibtex: "bib", csl: "csl.json" }, REFERENCES = ["ris", "bibtex", "csl"];
const SIGNS = { supported: "✓", found: "○", contradicted: "✗", not_found: "?", unchecked: "·" };

export async function showAnswer() {
  const id = state.id, run = await call(`/page/runs/${id}`);
  if (id !== state.id) return; // another run was opened meanwhile
  setFinishedRun(run);
  $("answer").innerHTML = run.html; // made safe by the server
  const cost = run.cost ? `$${run.cost.toFixed(4)}` : "";
  $("answered").textContent = run.answered_note || "";
  $("answered").className = `answered a-${run.answered || "yes"}`;
  $("answered").hidden = !run.answered_note;
  $("figures").textContent = [run.figures, run.gap, `${run.seconds} s`, `${run.tokens.toLocaleString("en")} tokens`, cost].filter(Boolean).join(" · ");
  $("status").textContent = ["final_answer", "plain_answer", ""].includes(run.stop) ? "" : `Ended early: ${run.stop.replaceAll("_", " ")}`;
  setBars(run.timeline);
  draw();
  fill("conflicts", "conflict-list", run.conflicts.map(conflictItem));
  fill("left-out", "left-out-list", run.dropped.map((one) => element("li", { dir: "auto" }, `${one.text} `, verdict(one))));
  fill("sources", "source-list", run.sources.map(sourceItem));
  if (!$("notes").childElementCount) for (const warning of run.warnings || []) addNote(warning); // of a run that was not followed
  if (run.model === "extractive") showHint("Without a model: passages from the pages. Add one with nexi config.");
  showTools();
}

// A run that is gone, whose answer the history still has; whether there is one.
export async function showRemembered(id) {
  try { await showAnswer(); } catch { return false; }
  if (!state.run) return false;
  $("asked").textContent = state.run.question;
  document.title = `${state.run.question.slice(0, 60)} - nexi`;
  setStatus("Its run is no longer kept, and with it the evidence. This is the answer it came to.");
  return state.id === id;
}

function fill(section, list, items) {
  $(list).replaceChildren(...items);
  $(section).hidden = !items.length;
}

const isWeb = (url) => /^https?:\/\//i.test(url);
const outside = (href, text) => element("a", { href, textContent: text, rel: "noreferrer noopener", target: "_blank", dir: "auto" });
const verdict = (one) => element("span", { className: `verdict v-${one.verdict}`, textContent: `${SIGNS[one.verdict] || "·"} ${one.said}` });
const sourceOf = (number) => state.run?.sources.find((source) => source.n === number);

function sourceItem(source) {
  const name = source.title || source.url;
  const title = isWeb(source.link) ? outside(source.link, name) : element("span", { textContent: name, dir: "auto" });
  const about = [source.host, source.site, source.author, source.published, source.accessed ? `read ${source.accessed}` : ""].filter(Boolean).join(" · ");
  const item = element("li", { id: `source-${source.n}`, tabIndex: -1 }, element("span", { className: "n", textContent: `[${source.n}]` }), element("div", {},
    title, element("p", { className: "site", textContent: about, dir: "auto" }), element("p", {}, ...(source.said ? [verdict(source), " "] : []))));
  if (state.run.kept) item.querySelector("p:last-child").append(button("Stored text", `Stored text of source ${source.n}`, () => showStored(source)));
  return item;
}

function button(text, label, act, kind = "quiet") {
  const made = element("button", { type: "button", textContent: text, className: kind, onclick: act });
  if (label) made.setAttribute("aria-label", label);
  return made;
}

// where sources disagree: the readings side by side

function conflictItem(conflict) {
  const sides = conflict.readings.map((reading) => element("li", {},
    element("p", { className: "value", textContent: reading.value, dir: "auto" }),
    ...(reading.quote ? [element("blockquote", { textContent: reading.quote, dir: "auto" })] : []),
    element("p", { className: "site" }, ...reading.sources.flatMap((n) => [citeOf(n), " "]), reading.independent > 1 ? `${reading.independent} independent` : "")));
  const about = conflict.subject || "One says what another denies";
  return element("li", {}, element("h3", { textContent: about, dir: "auto" }), element("ul", { className: "sides" }, ...sides));
}

function citeOf(number) {
  const source = sourceOf(number);
  const made = button(`[${number}]${source ? ` ${source.host}` : ""}`, `Source ${number}`, () => toSource(number), "cite");
  made.disabled = !source;
  return made;
}

function toSource(number) {
  const item = $(`source-${number}`);
  item?.scrollIntoView({ block: "center" });
  item?.focus({ preventScroll: true });
}

// evidence

export async function showEvidence(claim, number) {
  const found = state.run?.claims[claim];
  if (!found) return;
  const some = found.evidence.filter((one) => !number || one.n === number);
  const parts = some.map((one) => element("section", { className: "found" }, element("p", { textContent: "Looking it up" })));
  const words = element("p", { className: "sentence", textContent: found.text, dir: "auto" });
  const why = some.length ? (found.reason.startsWith("not judged") ? found.reason : "") : found.reason || "no source is named for it";
  const meaning = element("p", { className: "site meaning", textContent: state.run.marks?.[found.verdict] || "" });
  openDialog("Evidence", words, element("p", {}, verdict(found), why ? ` ${why}` : ""), meaning, ...parts);
  await Promise.all(some.map((one, i) => fillFound(parts[i], one)));
  if (parts[0]) toMark(parts[0]);
}

async function fillFound(part, one) {
  const source = sourceOf(one.n), shown = [];
  const more = [one.reason, one.missing.length ? `missing: ${one.missing.join(", ")}` : "", one.other ? `the page has: ${one.other}` : ""].filter(Boolean).join(" · ");
  try {
    const passage = await passageOf(one.n, one.start, one.end);
    shown.push(passageBox(passage), links(passage, one));
  } catch (error) { shown.push(element("p", { textContent: error.message })); }
  part.replaceChildren(heading(source, one.n), element("p", {}, verdict(one), more ? ` ${more}` : ""), ...shown);
}

function heading(source, number) {
  const about = source ? [source.host, source.site, source.published].filter(Boolean).join(" · ") : "";
  return element("h3", { dir: "auto" }, `[${number}] ${source?.title || source?.url || ""} `, element("span", { className: "site", textContent: about }));
}

const passageOf = (n, start, end, whole = false) => call(`/page/runs/${state.id}/passage?source=${n}&start=${start}&end=${end}${whole ? "&whole=1" : ""}`);

function passageBox(passage) {
  const box = element("div", { className: "passage", tabIndex: 0, dir: "auto" });
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Stored text of the page");
  box.append(passage.cut ? "… " : "", passage.before, element("mark", { textContent: passage.span }), passage.after, passage.left ? " …" : "");
  return box;
}

function links(passage, one) {
  const line = element("p", { className: "tools" });
  if (isWeb(passage.link)) line.append(outside(passage.link, "Open the page there"));
  if (passage.cut || passage.left) line.append(button("Show the whole text", "", async (event) => {
    event.target.disabled = true;
    try {
      const box = passageBox(await passageOf(one.n, one.start, one.end, true)), part = line.parentElement;
      part.querySelector(".passage").replaceWith(box);
      event.target.remove();
      toMark(part);
      box.focus({ preventScroll: true });
    } catch (error) { line.append(element("span", { textContent: error.message })); }
  }));
  return line;
}

function toMark(part) {
  const box = part.querySelector(".passage"), mark = part.querySelector("mark");
  if (mark) box.scrollTop = mark.offsetTop - box.clientHeight / 3;
}

async function showStored(source) {
  openDialog("Stored text", element("section", { className: "found" }, element("p", { textContent: "Looking it up" })));
  const part = $("evidence-body").querySelector(".found");
  try {
    const passage = await passageOf(source.n, 0, 0, true);
    part.replaceChildren(heading(source, source.n), passageBox(passage), links(passage, { n: source.n, start: 0, end: 0 }));
  } catch (error) { part.replaceChildren(heading(source, source.n), element("p", { textContent: error.message })); }
}

// The dialog gives the focus back to what opened it.
function openDialog(title, ...children) {
  const dialog = $("evidence"), opener = document.activeElement;
  $("evidence-head").textContent = title;
  $("evidence-body").replaceChildren(...children);
  dialog.addEventListener("close", () => opener?.isConnected && opener.focus(), { once: true });
  dialog.showModal();
  dialog.scrollTop = 0;
}

document.addEventListener("click", (event) => {
  if (event.target === $("evidence")) $("evidence").close(); // beside the dialog
  const cite = event.target.closest?.("#answer .cite:not([data-claim])");
  if (cite) toSource(Number(cite.dataset.n));
});

// what can be done with a run that has ended

export function showTools() {
  $("tools").hidden = false;
  const run = state.run;
  $("exports").replaceChildren(...(run?.kept ? FORMS.filter(([form]) => run.sources.length || !REFERENCES.includes(form)).map(exportLink) : []));
  if (!run) $("exports").append(button("Resume this run", "", resumeRun, ""));
}

function exportLink([form, name]) {
  const link = element("a", { href: `/page/runs/${state.id}/export?format=${form}`, textContent: name, download: "" });
  link.setAttribute("aria-label", `Export as ${name}`);
  link.onclick = (event) => { event.preventDefault(); saveExport(form, name); };
  return link;
}

async function saveExport(form, name = form) {
  setStatus(`Making the ${name} file`);
  try {
    const answer = await fetch(`/page/runs/${state.id}/export?format=${form}`, { headers: withToken() });
    if (!answer.ok) throw new Error(problemOf(await answer.json()) || "the export failed");
    const link = element("a", { href: URL.createObjectURL(await answer.blob()), download: `nexi-${state.id}.${SUFFIXES[form] || form}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    setStatus(`${name}: saved as ${link.download}`);
  } catch (error) { setStatus(""); addNote(error.message, true); }
}

async function resumeRun() {
  try {
    const run = await call(`/v1/runs/${state.id}/resume`, { method: "POST" });
    location.assign(`/runs/${run.id}`);
  } catch (error) { addNote(error.message, true); }
}
