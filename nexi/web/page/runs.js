// History: the questions that were asked, by conversation, to find, open, name, pin, resume, stop and delete.
import { $, call, element, plural } from "./core.js";
import { bindSearchField, confirmAction, removeItem, setPanelMessage } from "./panel.js";
import { formatMoney, formatSeconds } from "./spent.js";

const STATES = {
  running: "● running", waiting: "◐ waiting for you", finished: "✓ finished", failed: "✗ failed", unfinished: "… unfinished", damaged: "! damaged", "answer kept": "✓ answer kept",
};
const WORDS = {
  more: "The newest 200 are shown: look for words to see others.", noneFound: "Nothing of that was asked.", none: "Nothing was asked yet.", stop: "Stop", resume: "Resume", rename: "Rename", pin: "Pin", unpin: "Unpin",
  remove: "Delete", select: (text) => `Select: ${text}`, name: "A name for it", stopping: "It was asked to answer now, from what it has read.", deleted: "Deleted.", deleteSome: (n) => `Delete ${plural(n, "run")}`,
  askOne: "Delete this run?", askSome: (n) => `Delete ${plural(n, "run")}?`, gone: "its answer and what it recorded go for good.", allGone: "What is selected goes for good, with its answer and what it recorded.", cancelled: " It is running and will be cancelled.",
};
const REFRESH_MS = 3000, BUSY = ["running", "waiting"];
let timer = 0;

export function fillRuns() {
  $("runs-delete").onclick = () => deleteChosen().catch((error) => setPanelMessage("runs", error.message));
  $("runs-list").onchange = countChosen;
  countChosen();
  return bindSearchField("runs", async (wanted, isLatest) => {
    clearTimeout(timer);
    const { items, more } = await fetchRuns(wanted);
    if (!isLatest()) return;
    $("runs-list").replaceChildren(...(wanted ? items.map((item) => runItem(item, wanted)) : groupRuns(items).map(threadItem)));
    countChosen();
    setPanelMessage("runs", items.length ? (more ? WORDS.more : "") : wanted ? WORDS.noneFound : WORDS.none);
    watchBusy(items);
  });
}

const fetchRuns = (wanted) => call(`/page/history?limit=200&q=${encodeURIComponent(wanted)}`);
const watchBusy = (items) => { if (items.some((item) => BUSY.includes(item.state))) timer = setTimeout(refreshRuns, REFRESH_MS); };

// The runs of a conversation together, the first question first; conversations in the order of their newest run.
export function groupRuns(items) {
  const groups = new Map();
  for (const item of items) groups.set(item.thread || item.id, [item, ...(groups.get(item.thread || item.id) || [])]);
  return [...groups.values()];
}

function threadItem([first, ...later]) {
  const row = runItem(first, "");
  if (later.length) row.append(element("ul", { className: "rows later" }, ...later.map((item) => runItem(item, ""))));
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
  const made = runItem(item, wanted), later = row.querySelector(".later");
  if (later) made.append(later);
  row.replaceWith(made);
  return made;
}

function runItem(item, wanted) {
  const name = item.title || item.question || item.id, link = element("a", { href: `/runs/${item.id}`, textContent: name, className: "q", dir: "auto" });
  const day = item.created ? new Date(item.created).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "";
  const size = [item.words ? plural(item.words, "word") : "", item.seconds ? formatSeconds(item.seconds) : "", item.cost ? formatMoney(item.cost) : ""];
  const about = element("p", { className: "state" }, item.pinned ? "★ " : "", element("span", { className: `is-${item.state.split(" ")[0]}`, textContent: STATES[item.state] || item.state }), ` · ${[item.mode, day, ...size].filter(Boolean).join(" · ")}`);
  const words = element("div", {}, link, about);
  if (wanted && item.excerpt) words.append(element("p", { className: "excerpt", textContent: item.excerpt, dir: "auto" }));
  const chosen = element("input", { type: "checkbox", value: item.id });
  chosen.setAttribute("aria-label", WORDS.select(name).slice(0, 120));
  const row = element("li", {}, chosen, words, element("div", { className: "tools" }, ...runButtons(item, name)));
  Object.assign(row.dataset, { id: item.id, state: item.state });
  return row;
}

function runButtons(item, name) {
  const act = (text, does) => {
    const made = element("button", { type: "button", textContent: text, className: "quiet" });
    made.setAttribute("aria-label", `${text}: ${name}`.slice(0, 120));
    made.onclick = async () => {
      made.disabled = true;
      try { await does(made.closest("li")); } catch (error) { setPanelMessage("runs", error.message); }
      made.disabled = false;
    };
    return made;
  };
  const made = [];
  if (BUSY.includes(item.state)) made.push(act(WORDS.stop, () => stopRun(item)));
  if (["unfinished", "failed"].includes(item.state)) made.push(act(WORDS.resume, () => resumeRun(item)));
  return [
    ...made, act(WORDS.rename, (row) => renameRun(item, row)), act(item.pinned ? WORDS.unpin : WORDS.pin, (row) => labelRun(item, row, { pinned: !item.pinned })),
    act(WORDS.remove, (row) => deleteRun(item, row)),
  ];
}

async function stopRun(item) {
  await call(`/v1/runs/${item.id}/stop`, { method: "POST" });
  setPanelMessage("runs", WORDS.stopping);
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
  field.setAttribute("aria-label", WORDS.name);
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
  const more = BUSY.includes(item.state) ? WORDS.cancelled : "";
  if (!await confirmAction(WORDS.askOne, `“${(item.title || item.question || item.id).slice(0, 300)}”: ${WORDS.gone}${more}`, WORDS.remove)) return;
  await call(`/page/history/${item.id}`, { method: "DELETE" });
  takeOut(row);
  setPanelMessage("runs", WORDS.deleted);
}

// What continued a deleted run stays.
function takeOut(row) {
  for (const later of [...(row.querySelector(".later")?.children || [])]) row.before(later);
  removeItem(row);
  countChosen();
}

const chosenBoxes = () => [...$("runs-list").querySelectorAll("input:checked")];

function countChosen() {
  const count = chosenBoxes().length;
  $("runs-delete").hidden = !count;
  $("runs-delete").textContent = WORDS.deleteSome(count);
}

async function deleteChosen() {
  const boxes = chosenBoxes();
  if (!await confirmAction(WORDS.askSome(boxes.length), WORDS.allGone, WORDS.remove)) return;
  for (const box of boxes) {
    await call(`/page/history/${box.value}`, { method: "DELETE" });
    takeOut(box.closest("li"));
  }
  setPanelMessage("runs", WORDS.deleted);
}
