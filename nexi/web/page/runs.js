// History: the questions that were asked, by day and conversation, to find, open, name, pin, resume, stop and delete.
import { $, call, capitalise, element } from "./core.js";
import { bindSearchField, confirmAction, removeItem, setPanelMessage } from "./panel.js";
import { formatMoney, formatSeconds } from "./spent.js";
import { formatDate, language, say } from "./texts.js";

const SIGNS = { running: "●", waiting: "◐", finished: "✓", failed: "✗", stopped: "■", unfinished: "…", damaged: "!", kept: "✓" };
const MODES = ["search", "research", "agentic"];
const STATES = ["running", "waiting", "finished", "failed", "stopped", "unfinished"];
const REFRESH_MS = 3000, BUSY = ["running", "waiting"];
let timer = 0;

export function fillRuns() {
  $("runs-delete").onclick = () => deleteChosen().catch((error) => setPanelMessage("runs", error.message));
  $("runs-list").onchange = countChosen;
  countChosen();
  fillKinds();
  const filled = bindSearchField("runs", async (wanted, isLatest) => {
    clearTimeout(timer);
    const { items, more } = await fetchRuns(wanted);
    if (!isLatest()) return;
    $("runs-list").replaceChildren(...groupDays(foldRepeats(wanted ? items.map((item) => [item]) : groupRuns(items))).map(([day, rows]) => daySection(day, rows, wanted)));
    countChosen();
    setPanelMessage("runs", items.length ? (more ? say("runs.more") : "") : say(wanted || $("runs-kind").value ? "runs.none_found" : "runs.none"));
    watchBusy(items);
  });
  $("runs-kind").onchange = $("runs-filter").oninput;
  return filled;
}

// What may be listed: all, one state, research, or one space.
async function fillKinds() {
  const list = $("runs-kind"), option = (value, textContent) => element("option", { value, textContent });
  if (list.options.length > 1) return;
  list.append(...STATES.map((state) => option(`state=${state}`, say(`run.${state}`))), option("mode=research", say("mode.research")));
  const { spaces } = await call("/v1/spaces").catch(() => ({ spaces: [] })); // a guest has none
  list.append(...spaces.map(({ address }) => option(`space=${encodeURIComponent(address)}`, address)));
}

const fetchRuns = (wanted) => call(`/page/history?limit=200&q=${encodeURIComponent(wanted)}&${$("runs-kind").value}`);
const watchBusy = (items) => { if (items.some((item) => BUSY.includes(item.state))) timer = setTimeout(refreshRuns, REFRESH_MS); };

// The runs of a conversation together, the first question first; conversations in the order of their newest run.
export function groupRuns(items) {
  const groups = new Map();
  for (const item of items) groups.set(item.thread || item.id, [item, ...(groups.get(item.thread || item.id) || [])]);
  return [...groups.values()];
}

// Conversations that begin with the same question are one, its newest first; a name or a pin keeps one apart.
export function foldRepeats(groups) {
  const folded = new Map();
  for (const group of groups) {
    const { id, pinned, title, question, space } = group[0], key = pinned || title || !question ? id : `${space}\n${question.trim().toLowerCase()}`;
    folded.set(key, [...(folded.get(key) || []), group]);
  }
  return [...folded.values()];
}

export function groupDays(folded) {
  const days = new Map();
  for (const [group, ...earlier] of folded) {
    const day = group.some((item) => item.pinned) ? say("runs.pinned") : nameDay(group.at(-1).created);
    days.set(day, [...(days.get(day) || []), [group, ...earlier]]);
  }
  return [...days];
}

function nameDay(created) {
  const then = new Date(created), days = Math.round((new Date(then).setHours(0, 0, 0, 0) - new Date().setHours(0, 0, 0, 0)) / 864e5);
  if (Number.isNaN(days)) return "";
  return days < -1 ? then.toLocaleDateString(language(), { dateStyle: "full" }) : capitalise(new Intl.RelativeTimeFormat(language(), { numeric: "auto" }).format(days, "day"));
}

const daySection = (day, rows, wanted) => element("section", { className: "day" }, element("h2", { textContent: day }), element("ul", { className: "rows" }, ...rows.map((row) => foldedItem(row, wanted, day))));

function foldedItem([[first, ...later], ...earlier], wanted, day) {
  const row = runItem(first, wanted, day);
  if (later.length) row.append(element("ul", { className: "rows later" }, ...foldRepeats(later.reverse().map((item) => [item])).reverse().map((each) => foldedItem(each, wanted, day))));
  if (earlier.length) row.append(element("details", { className: "later" }, element("summary", { textContent: say("runs.repeats", { n: earlier.length + 1 }) }), element("ul", { className: "rows" }, ...earlier.map((group) => foldedItem([group], wanted, day)))));
  return row;
}

// While runs are under way their states are looked up again; rows are changed in place, so that nothing loses the focus.
async function refreshRuns() {
  if ($("runs").hidden) return;
  const wanted = $("runs-filter").value.trim();
  try {
    const { items } = await fetchRuns(wanted);
    for (const item of items) {
      const row = rowOf(item);
      if (row && row.dataset.state !== item.state) changeRow(row, item, wanted);
    }
    watchBusy(items);
  } catch (error) { setPanelMessage("runs", error.message); }
}

const rowOf = (item) => $("runs-list").querySelector(`li[data-id="${item.id}"]`);

function changeRow(row, item, wanted = "") {
  const made = runItem(item, wanted, row.dataset.day);
  made.append(...row.querySelectorAll(":scope > .later"));
  row.replaceWith(made);
  return made;
}

function runItem(item, wanted, day) {
  const name = item.title || item.question || item.id, link = element("a", { href: `/runs/${item.id}`, textContent: name, className: "q", dir: "auto" });
  const isOfDay = day && day === nameDay(item.created), when = isOfDay ? new Date(item.created).toLocaleTimeString(language(), { timeStyle: "short" }) : item.created ? formatDate(item.created) : "";
  const size = [item.words ? say("count.words", { n: item.words }) : "", item.seconds ? formatSeconds(item.seconds) : "", item.cost ? formatMoney(item.cost) : ""];
  const state = item.state === "answer kept" ? "kept" : item.state, mode = MODES.includes(item.mode) ? say(`mode.${item.mode}`) : item.mode;
  const about = element("p", { className: "state" }, item.pinned ? "★ " : "", element("span", { className: `is-${state}`, textContent: SIGNS[state] ? `${SIGNS[state]} ${say(`run.${state}`)}` : state }), ` · ${[mode, when, ...size].filter(Boolean).join(" · ")}`);
  const words = element("div", {}, link, about);
  if (wanted && item.excerpt) words.append(element("p", { className: "excerpt", textContent: item.excerpt, dir: "auto" }));
  const chosen = element("input", { type: "checkbox", value: item.id });
  chosen.setAttribute("aria-label", say("runs.select", { name }).slice(0, 120));
  const row = element("li", {}, chosen, words, element("div", { className: "tools" }, ...runButtons(item, name)));
  Object.assign(row.dataset, { id: item.id, state: item.state, day });
  return row;
}

function runButtons(item, name) {
  const act = (text, does) => {
    const made = element("button", { type: "button", textContent: text, className: "quiet" });
    made.setAttribute("aria-label", say("runs.act", { act: text, name }).slice(0, 120));
    made.onclick = async () => {
      made.disabled = true;
      try { await does(made.closest("li")); } catch (error) { setPanelMessage("runs", error.message); }
      made.disabled = false;
    };
    return made;
  };
  const made = [];
  if (BUSY.includes(item.state)) made.push(act(say("runs.stop"), () => stopRun(item)));
  if (["unfinished", "failed", "stopped"].includes(item.state)) made.push(act(say("runs.resume"), () => resumeRun(item)));
  return [
    ...made, act(say("runs.rename"), (row) => renameRun(item, row)), act(say(item.pinned ? "runs.unpin" : "runs.pin"), (row) => labelRun(item, row, { pinned: !item.pinned })),
    act(say("runs.delete"), (row) => deleteRun(item, row)),
  ];
}

async function stopRun(item) {
  await call(`/v1/runs/${item.id}/stop`, { method: "POST" });
  setPanelMessage("runs", say("runs.stopping"));
}

async function resumeRun(item) {
  const run = await call(`/v1/runs/${item.id}/resume`, { method: "POST" });
  location.assign(`/runs/${run.id}`);
}

async function labelRun(item, row, label) {
  const kept = await call(`/page/history/${item.id}`, { method: "POST", body: JSON.stringify(label) });
  changeRow(row, { ...item, title: "", pinned: false, ...kept }).querySelector(".q").focus();
}

// The name is typed where it stands; Enter keeps it, Escape or leaving the field does not.
function renameRun(item, row) {
  const link = row.querySelector(".q"), field = element("input", { value: link.textContent, maxLength: 300, className: "naming", dir: "auto" });
  field.setAttribute("aria-label", say("runs.name"));
  link.replaceWith(field);
  const end = () => { if (field.isConnected) field.replaceWith(link); };
  field.onblur = end;
  field.onkeydown = (event) => {
    if (event.key === "Escape") { event.stopPropagation(); field.onblur = null; end(); link.focus(); }
    if (event.key === "Enter" && !event.isComposing) { field.onblur = null; labelRun(item, row, { title: field.value }).catch((error) => setPanelMessage("runs", error.message)); }
  };
  field.select();
}

// deleting one, or all that are chosen

async function deleteRun(item, row) {
  const more = BUSY.includes(item.state) ? ` ${say("runs.cancelled")}` : "";
  if (!await confirmAction(say("runs.ask_one"), say("runs.gone", { name: (item.title || item.question || item.id).slice(0, 300) }) + more, say("runs.delete"))) return;
  await call(`/page/history/${item.id}`, { method: "DELETE" });
  takeOut(row);
  setPanelMessage("runs", say("runs.deleted"));
}

// What continued or repeated a deleted run stays.
function takeOut(row) {
  const list = row.parentElement;
  for (const later of row.querySelectorAll(":scope > .later > li, :scope > .later > ul > li")) row.before(later);
  removeItem(row);
  if (!list.children.length) { list.closest(".later, .day").remove(); $("runs-filter").focus(); }
  countChosen();
}

const chosenBoxes = () => [...$("runs-list").querySelectorAll("input:checked")];

function countChosen() {
  const count = chosenBoxes().length;
  $("runs-delete").hidden = !count;
  $("runs-delete").textContent = say("runs.delete_some", { n: count });
}

async function deleteChosen() {
  const boxes = chosenBoxes();
  if (!await confirmAction(say("runs.ask_some", { n: boxes.length }), say("runs.all_gone"), say("runs.delete"))) return;
  for (const box of boxes) {
    await call(`/page/history/${box.value}`, { method: "DELETE" });
    takeOut(box.closest("li"));
  }
  setPanelMessage("runs", say("runs.deleted"));
}
