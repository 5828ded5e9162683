// Reading and checking: the answer with its evidence, its conflicts, its sources and its exports.
import { addContents } from "./contents.js";
import { $, addNote, call, element, problemOf, setStatus, showHint, withToken } from "./core.js";
import { drawSources, isWeb, nameFiles, outside, showSource, sourceOf, translateMarks, verdict } from "./sources.js";
import { runOf, setBars, setFinishedRun, state } from "./state.js";
import { remember, say, tell } from "./texts.js";
import { draw } from "./timeline.js";
import { explainMarks, showVerdict } from "./verdict.js";

const WIDE = "(min-width: 62.01rem)"; // where the rail stands beside the text

export async function showAnswer() {
  const id = state.id, run = nameFiles(await call(`/page/runs/${id}`));
  if (id !== state.id) return; // another run was opened meanwhile
  setFinishedRun(run);
  $("answer").innerHTML = run.html; // made safe by the server
  translateMarks($("answer"));
  hideRepeatedTitle(run.question);
  addContents();
  $("answered").textContent = run.answered_note ? say(`answered.${run.answered}`) : "";
  $("answered").className = `answered a-${run.answered || "yes"}`;
  $("answered").hidden = !run.answered_note;
  showVerdict(run, showEvidence);
  $("status").textContent = describeStop(run.stop);
  setBars(run.timeline);
  draw();
  fill("conflicts", "conflict-list", run.conflicts.map(conflictItem));
  fill("left-out", "left-out-list", run.dropped.map((one) => element("li", { dir: "auto" }, `${one.text} `, verdict(one))));
  drawSources(showStored);
  $("pictures").hidden = true;
  if (run.pictures?.length) import("./pictures.js").then(({ showPictures }) => { if (state.run === run) showPictures(run); });
  if (!state.source) $("cost").open = false;
  if (!$("notes").childElementCount) for (const warning of run.warnings || []) addNote(warning); // of a run that was not followed
  if (run.model === "extractive") showHint(say("read.built_in"));
  showTools();
}

// Stopping is what the reader wanted, and no failure.
function describeStop(stop) {
  if (stop === "cancelled") return say("read.stopped");
  return ["final_answer", "plain_answer", ""].includes(stop) ? "" : say("read.early", { why: say(`stop.${stop}`) });
}

// The pages that were read and not cited, once the work of an old run is known.
export function showReadPages() { if (state.run) drawSources(showStored); }

// A run that is gone, whose answer the history still has; whether there is one.
export async function showRemembered(id) {
  try { await showAnswer(); } catch { return false; }
  if (!state.run) return false;
  $("asked").textContent = state.run.question;
  document.title = `${state.run.question.slice(0, 60)} - nexi`;
  setStatus(say("read.gone"));
  return state.id === id;
}

function fill(section, list, items) {
  $(list).replaceChildren(...items);
  $(section).hidden = !items.length;
}

// A report that begins with its question does not say it twice.
function hideRepeatedTitle(question) {
  const title = $("answer").querySelector("h1"), plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
  if (title && title === $("answer").firstElementChild && plain(title.textContent) === plain(question)) title.hidden = true;
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
    element("p", { className: "site" }, ...reading.sources.flatMap((n) => [citeOf(n), " "]), reading.independent > 1 ? say("read.independent", { n: reading.independent }) : "", reading.note ? ` · ${reading.note}` : "")));
  const about = conflict.subject || say("read.denies");
  return element("li", {}, element("h3", { textContent: about, dir: "auto" }), element("ul", { className: "sides" }, ...sides));
}

function citeOf(number) {
  const source = sourceOf(number);
  const made = button(`[${number}]${source ? ` ${source.host}` : ""}`, say("read.source", { n: number }), () => showSource(number), "cite");
  made.disabled = !source;
  return made;
}

// evidence

// Every place of the answer that a source is named at, in reading order.
const placesOf = (run) => run.claims.flatMap((claim, index) => claim.evidence.map((one) => ({ claim: index, n: one.n })));

export async function showEvidence(claim, number, run = state.run) {
  const found = run?.claims[claim];
  if (!found) return;
  const some = found.evidence.filter((one) => !number || one.n === number);
  const parts = some.map(() => element("section", { className: "found" }, element("p", { textContent: say("read.looking") })));
  const words = element("p", { className: "sentence", textContent: found.text, dir: "auto" });
  const why = some.length ? (found.reason.startsWith("not judged") ? found.reason : "") : found.reason || say("read.unnamed");
  const places = placesOf(run), at = places.findIndex((place) => place.claim === claim && (!number || place.n === number));
  openEvidence(say("read.evidence"), words, element("p", {}, verdict(found), why ? " · " : "", tell(element("span"), why)), ...explainMarks([found.verdict], run), ...parts);
  showPlace(places, at, claim, number, run);
  await Promise.all(some.map((one, i) => fillFound(parts[i], one, run)));
  if (parts[0]) toMark(parts[0]);
}

function showPlace(places, at, claim, number, run) {
  const step = (by) => () => { const next = places[at + by]; showEvidence(next.claim, next.n, run); };
  $("evidence-at").textContent = at < 0 ? "" : say("read.place", { at: at + 1, all: places.length });
  Object.assign($("evidence-before"), { disabled: at <= 0, onclick: step(-1) });
  Object.assign($("evidence-after"), { disabled: at < 0 || at === places.length - 1, onclick: step(1) });
  markCurrent(claim, number, run);
}

const textOf = (run) => (run && run !== state.run && document.querySelector(`#thread > li[data-id="${run.id}"]`)) || $("answer");

function markCurrent(claim, number, run) {
  for (const old of document.querySelectorAll(":is(#answer, #thread) [aria-current]")) old.removeAttribute("aria-current");
  const text = textOf(run), here = text.querySelector(`[data-claim="${claim}"]${number ? `[data-n="${number}"]` : ""}`) || text.querySelector(`[data-claim="${claim}"]`);
  here?.setAttribute("aria-current", "true");
  here?.scrollIntoView({ block: "nearest" });
}

async function fillFound(part, one, run) {
  const source = sourceOf(one.n, run), shown = [], spots = [[one.start, one.end], ...(one.places || [])].sort((a, b) => a[0] - b[0]);
  const more = [one.standing ? say(`verdict.${one.standing}`) : "", one.missing.length ? say("read.missing", { words: one.missing.join(", ") }) : "", one.other ? say("read.other", { value: one.other }) : ""].filter(Boolean).join(" · ");
  for (const [i, [start, end]] of spots.entries()) {
    if (spots.length > 1) shown.push(element("p", { className: "site", textContent: say("read.part", { at: i + 1, all: spots.length }) }));
    try {
      const passage = await passageOf(run, one.n, start, end), box = passageBox(passage);
      shown.push(box, links(passage, { run, n: one.n, start, end }, box));
    } catch (error) { shown.push(element("p", { textContent: error.message })); }
  }
  part.replaceChildren(heading(source, one.n), element("p", {}, verdict(one), one.reason ? " · " : "", tell(element("span"), one.reason), more ? ` · ${more}` : ""), ...shown);
}

function heading(source, number) {
  const about = source ? [source.host, source.site, source.published].filter(Boolean).join(" · ") : "";
  return element("h3", { dir: "auto" }, `[${number}] ${source?.title || source?.url || ""} `, element("span", { className: "site", textContent: about }));
}

const passageOf = (run, n, start, end, whole = false) => call(`/page/runs/${run.id}/passage?source=${n}&start=${start}&end=${end}${whole ? "&whole=1" : ""}`);

// Headings without the marks of Markdown, as a reader of the page saw them.
const plainText = (text) => text.replace(/^#{1,6} /gm, "");

function passageBox(passage) {
  const box = element("div", { className: "passage", tabIndex: 0, dir: "auto" });
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", say("read.region"));
  box.append(passage.cut ? "… " : "", plainText(passage.before), element("mark", { textContent: plainText(passage.span) }), plainText(passage.after), passage.left ? " …" : "");
  return box;
}

function links(passage, one, box) {
  const line = element("p", { className: "tools" });
  if (isWeb(passage.link)) line.append(outside(passage.link, say("read.there")));
  if (passage.cut || passage.left) line.append(button(say("read.whole"), "", async (event) => {
    event.target.disabled = true;
    try {
      const whole = passageBox(await passageOf(one.run, one.n, one.start, one.end, true));
      box.replaceWith(whole);
      event.target.remove();
      scrollToMark(whole);
      whole.focus({ preventScroll: true });
    } catch (error) { line.append(element("span", { textContent: error.message })); }
  }));
  return line;
}

function toMark(part) { for (const box of part.querySelectorAll(".passage")) scrollToMark(box); }

function scrollToMark(box) {
  const mark = box.querySelector("mark");
  if (mark) box.scrollTop = mark.offsetTop - box.clientHeight / 3;
}

export async function showStored(source, run = state.run) {
  openEvidence(say("read.stored"), element("section", { className: "found" }, element("p", { textContent: say("read.looking") })));
  showPlace([], -1, -1, 0, run);
  const part = $("evidence-body").querySelector(".found");
  try {
    const passage = await passageOf(run, source.n, 0, 0, true);
    const box = passageBox(passage);
    part.replaceChildren(heading(source, source.n), box, links(passage, { run, n: source.n, start: 0, end: 0 }, box));
  } catch (error) { part.replaceChildren(heading(source, source.n), element("p", { textContent: error.message })); }
}

// Beside the text where there is room for it, over it where there is not; closed, it gives the focus back to what opened it.
let opener = null;

function openEvidence(title, ...children) {
  const dialog = $("evidence"), isWide = matchMedia(WIDE).matches;
  if (!dialog.contains(document.activeElement)) opener = document.activeElement;
  $("evidence-head").textContent = title;
  $("evidence-body").replaceChildren(...children);
  dialog.onclose = () => { markCurrent(-1, 0, state.run); if (opener?.isConnected) opener.focus(); };
  if (!dialog.open) { if (isWide) dialog.show(); else dialog.showModal(); }
  $("evidence-head").focus();
  dialog.scrollTop = $("working").scrollTop = 0;
}

export const closeEvidence = () => { if ($("evidence").open) $("evidence").close(); };

document.addEventListener("click", (event) => {
  if (event.target === $("evidence") && $("evidence").matches(":modal")) closeEvidence(); // beside the dialog
  const cite = event.target.closest?.(":is(#answer, .turn-answer) :is(.cite, .check)");
  if (!cite) return;
  const run = runOf(cite), number = Number(cite.dataset.n || 0);
  if (cite.dataset.claim) { event.preventDefault(); showEvidence(Number(cite.dataset.claim), number, run); }
  else if (run === state.run) showSource(number);
  else if (run.kept && sourceOf(number, run)) showStored(sourceOf(number, run), run);
});

// what can be done with a run that has ended

export function showTools() {
  $("tools").hidden = false;
  const run = state.run;
  for (const id of ["copy", "share", "follow"]) $(id).hidden = !run; // there is nothing to copy or to follow up
  $("publish").hidden = !(run?.kept && state.form?.share) || Boolean(run.of_another);
  $("publish").dataset.shared = run?.shared ? "1" : "";
  $("publish").textContent = say(run?.shared ? "app.unshare" : "app.share");
  $("exports").replaceChildren(...(run?.kept ? run.exports.map((one) => exportLink(one, run.id)) : []));
  if (!run) $("exports").append(button(say("read.resume"), "", resumeRun, ""));
}

export function exportLink({ format, title, suffix }, id) {
  const link = element("a", { href: `/page/runs/${id}/export?format=${format}`, textContent: title, download: "" });
  link.setAttribute("aria-label", say("read.export", { name: title }));
  link.onclick = (event) => { event.preventDefault(); saveExport(link.href, title, `nexi-${id}.${suffix}`); };
  return link;
}

async function saveExport(address, name, file) {
  setStatus(say("read.making", { name }));
  try {
    const answer = await fetch(address, { headers: withToken() });
    if (!answer.ok) throw new Error(problemOf(remember(await answer.json())) || say("read.export_failed"));
    const link = element("a", { href: URL.createObjectURL(await answer.blob()), download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    setStatus(say("read.saved", { name, file: link.download }));
  } catch (error) { setStatus(""); addNote(error.message, true); }
}

async function resumeRun() {
  try {
    const run = await call(`/v1/runs/${state.id}/resume`, { method: "POST" });
    location.assign(`/runs/${run.id}`);
  } catch (error) { addNote(error.message, true); }
}
