// Work in the left column: the plan with its researchers, their queries, pages and reports, while they happen and afterwards.
// Only what is open is drawn, and rows that did not change stay as they are, so that nothing loses its place or the focus.
import { $, call, element, hostOf, withToken } from "./core.js";
import { parseFrame, splitFrames } from "./frames.js";
import { applyWorkEvent, resetWork, state } from "./state.js";
import { remember, say } from "./texts.js";
import { countOf, isWorkEvent, researchersOf } from "./work.js";

const MAX_ROWS = 12, MAX_LATEST = 6, MAX_OPEN_ROWS = 100, MAX_RESEARCHERS = 60, SLICE_MS = 8;
let isTouched = false, isListening = false;

// A new run starts open; who opened or closed it keeps it so.
export function resetActivity(isOpen) {
  isTouched = false;
  Object.assign($("work"), { open: isOpen, hidden: false });
  for (const id of ["researchers", "work-queries", "work-pages"]) $(id).replaceChildren();
  drawActivity();
  if (isListening) return;
  isListening = true;
  $("work").firstElementChild.addEventListener("click", () => { isTouched = true; });
  $("work").addEventListener("toggle", drawActivity);
}

// A run that ended before it did anything has no work to show.
export function hideEmptyActivity() { $("work").hidden = !summarise(state.work, researchersOf(state.work)); }

// The answer takes the place of the work that led to it.
export function foldActivity() { if (!isTouched && $("work").open) $("work").open = false; }

export function drawActivity() {
  const work = state.work, people = researchersOf(work);
  const summary = summarise(work, people);
  $("work-sum").textContent = summary || say(state.run ? "work.done" : "doing.starting");
  $("work-wait").hidden = Boolean(summary || state.run); // where the plan and the first queries will stand
  $("work-bar").hidden = !people.length || work.progress === 100 || !state.source;
  if (!$("work-bar").hidden) { $("work-bar").value = work.progress; $("work-bar").textContent = `${work.progress} %`; }
  if (!$("work").open) return;
  drawPeople(work, people);
  const own = work.agents.get("");
  syncRows($("work-queries"), [...own.queries].slice(-MAX_ROWS), queryRow);
  const latest = work.isDeep ? people.flatMap((one) => [...one.pages].filter(([, page]) => page.state === "read").slice(-2)).slice(-MAX_LATEST) : [...own.pages].slice(-MAX_ROWS);
  $("work-latest").textContent = say(work.isDeep ? "work.latest" : "pages");
  $("work-latest").hidden = !latest.length;
  $("work-searches").hidden = !own.queries.size;
  syncRows($("work-pages"), state.source || !work.isDeep ? latest : [], pageRow);
  if (!state.source && work.isDeep) $("work-latest").hidden = true;
}

function summarise(work, people) {
  const done = people.filter((one) => one.state !== "working").length;
  return [
    state.source && work.round ? say(work.round > work.rounds ? "work.round" : "work.round_of", { round: work.round, rounds: work.rounds }) : "",
    people.length ? say("work.tasks_done", { done, n: people.length + work.waiting.length }) : work.tasks.length ? say("count.tasks", { n: work.tasks.length }) : "",
    countOf(work, "queries") ? say("count.searches", { n: countOf(work, "queries") }) : "",
    countOf(work, "pages") ? say("count.pages", { n: countOf(work, "pages") }) : "",
    state.source && people.length ? `${work.progress} %` : "",
  ].filter(Boolean).join(" · ");
}

// researchers and the tasks that wait for one

function drawPeople(work, people) {
  const list = $("researchers"), shown = people.slice(-MAX_RESEARCHERS).map((one) => [one.id, one]);
  syncRows(list, [...shown, ...work.waiting.map((task, i) => [`waiting ${i}`, { task, state: "waiting" }])], personRow, describePerson);
  list.hidden = !list.childElementCount;
  for (const row of list.children) if (row.firstChild.open) fillPerson(row);
}

const describePerson = (one) => [one.state, one.task, one.state === "working" ? one.doing : one.why, one.queries?.size, one.read].join("|");

function personRow(one, old) {
  if (old?.dataset.state === one.state && one.id) return updatePerson(old, one);
  const row = element("li", { className: `is-${one.state}` });
  row.dataset.state = one.state;
  const words = [element("b", { textContent: one.id || "" }), element("span", { className: "task", textContent: one.task, dir: "auto" }), element("span", { className: "doing", dir: "auto" }), element("span", { className: "counts" })];
  if (!one.id) {
    row.append(element("div", { className: "person" }, ...words));
    row.querySelector(".doing").textContent = say("states.waiting");
    return row;
  }
  row.id = `researcher-${one.id}`;
  const box = element("details", { open: Boolean(old?.firstChild.open) }, element("summary", { className: "person" }, ...words), element("div", { className: "found-by" }));
  box.addEventListener("toggle", () => { if (box.open) { history.replaceState(history.state, "", `#${encodeURIComponent(row.id)}`); fillPerson(row); } });
  row.append(box);
  if (one.finding) row.append(element("p", { className: "finding", textContent: one.finding, dir: "auto" }));
  return updatePerson(row, one);
}

function updatePerson(row, one) {
  const counts = [one.queries.size ? say("count.searches", { n: one.queries.size }) : "", one.read ? say("count.pages", { n: one.read }) : ""].filter(Boolean).join(" · ");
  const how = say(`states.${one.state}`);
  setText(row.querySelector(".doing"), one.state === "working" ? one.doing || how : one.why ? `${how}: ${one.why}` : how);
  setText(row.querySelector(".counts"), counts);
  return row;
}

// What a researcher asked, read and reported; drawn while it is open.
function fillPerson(row) {
  const one = state.work.agents.get(row.id.replace("researcher-", "")), box = row.querySelector(".found-by");
  if (!one) return;
  if (!box.childElementCount) box.append(element("ul", { className: "queries" }), element("ul", { className: "pages" }), element("div", { className: "report" }));
  const [queries, pages, report] = box.children;
  syncRows(queries, [...one.queries].slice(-MAX_OPEN_ROWS), queryRow);
  syncRows(pages, [...one.pages].slice(-MAX_OPEN_ROWS), pageRow);
  if (!one.report) return void setText(report, one.queries.size || one.pages.size ? "" : say("work.nothing"));
  if (report.dataset.shown) return;
  report.dataset.shown = "1";
  call("/page/render", { method: "POST", body: JSON.stringify({ text: one.report }) })
    .then(({ html }) => { report.innerHTML = html; report.prepend(element("h2", { textContent: say("work.report") })); }, () => { report.textContent = one.report; }); // made safe by the server
}

// rows

const setText = (node, text) => { if (node.textContent !== text) node.textContent = text; };

// Rows by their keys, in order; one whose value is described as before is not touched.
function syncRows(list, entries, make, describe = JSON.stringify) {
  const old = new Map([...list.children].map((row) => [row.dataset.key, row]));
  let at = list.firstElementChild;
  for (const [key, value] of entries) {
    let row = old.get(key);
    const sign = describe(value);
    if (row?.dataset.sign !== sign) {
      const made = make(value, row, key);
      if (row && row !== made) { if (at === row) at = made; row.replaceWith(made); }
      row = made;
      Object.assign(row.dataset, { key, sign });
    }
    old.delete(key);
    if (row === at) at = at.nextElementSibling; else list.insertBefore(row, at);
  }
  for (const row of old.values()) row.remove();
}

function queryRow(query, _, text) {
  const about = query.hits === undefined ? say("work.searching") : query.isUnanswered ? say("run.failed") : say(query.local ? "count.passages" : "count.results", { n: query.hits });
  return element("li", { className: query.hits === undefined ? "is-open" : query.isUnanswered ? "is-failed" : "" }, element("span", { textContent: text, dir: "auto" }), " ", element("small", { textContent: about }));
}

export const initialOf = (host) => (host.replace(/^www\./, "")[0] || "?").toUpperCase();

export function initialBadge(host) {
  const badge = element("span", { className: `initial tone-${[...host].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % 6}`, textContent: initialOf(host) });
  badge.setAttribute("aria-hidden", "true");
  return badge;
}

export function pageRow(page, _, url) {
  const host = /^https?:/i.test(url) ? hostOf(url) : "", name = page.title || url;
  const title = host ? element("a", { href: url, textContent: name, rel: "noreferrer noopener", target: "_blank", dir: "auto" }) : element("span", { textContent: name, dir: "auto" });
  const how = page.state === "reading" ? say("work.reading_now") : page.state === "failed" ? say("work.unread", { why: page.why }) : page.n ? `[${page.n}]` : page.ahead ? say("work.ahead") : "";
  return element("li", { className: page.state === "reading" ? "is-open" : page.state === "failed" ? "is-failed" : "" },
    initialBadge(host || name), element("div", {}, title, element("p", { className: "site", textContent: [host, page.date, how].filter(Boolean).join(" · "), dir: "auto" })));
}

// The work of a run that is over, from the same events.
export async function replayWork(id) {
  const answer = await fetch(`/v1/runs/${id}/events`, { headers: withToken({ "last-event-id": "0" }), cache: "no-store" });
  if (answer.status !== 200 || state.id !== id) return;
  resetWork();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", until = performance.now() + SLICE_MS; ;) {
    const { value, done } = await reader.read();
    if (done || state.id !== id) break;
    const whole = splitFrames(rest, value);
    rest = whole.rest;
    for (const frame of whole.frames.map(parseFrame)) {
      if (frame && isWorkEvent(frame.kind)) applyWorkEvent(frame.kind, remember(JSON.parse(frame.data)));
      if (performance.now() > until) { await new Promise((resolve) => setTimeout(resolve)); until = performance.now() + SLICE_MS; }
    }
  }
  if (state.id !== id) return;
  drawActivity();
  showAddressed();
}

// The researcher that the address names, opened.
export function showAddressed() {
  const name = decodeURIComponent(location.hash.slice(1));
  if (!name.startsWith("researcher-") || !state.work.agents.has(name.slice("researcher-".length))) return;
  isTouched = $("work").open = true;
  drawActivity();
  const row = $(name);
  row.firstChild.open = true;
  row.scrollIntoView({ block: "start" });
}
