// Keeping: what was asked, to find, open, go on with, stop and delete; and the panels that history, knowledge and set-up share.
import { $, call, element } from "./core.js";
import { fillKnowledge } from "./knowledge.js";
import { fillSetup } from "./setup.js";

const STATES = { running: "● running", finished: "✓ finished", failed: "✗ failed", unfinished: "… unfinished", damaged: "! damaged", "answer kept": "✓ answer kept" };
const PANELS = { runs: fillRuns, knowledge: fillKnowledge, setup: fillSetup };
const AGAIN_MS = 3000;
let timer = 0;

export const showRuns = () => toggle("runs"), showKnowledge = () => toggle("knowledge"), showSetup = () => toggle("setup");

// One panel at a time takes the place of what is shown; pressed again, its button gives that back.
async function toggle(name) {
  const opens = $(name).hidden;
  for (const each of Object.keys(PANELS)) {
    $(each).hidden = each !== name || !opens;
    $(`show-${each}`).setAttribute("aria-expanded", String(each === name && opens));
  }
  document.body.classList.toggle("keeping", opens);
  clearTimeout(timer);
  if (!opens) return;
  $(`${name}-head`).focus();
  try { await PANELS[name](); } catch (error) { told(name, error.message); }
}

export function told(panel, text) { $(`${panel}-told`).textContent = text; }

// Whether the person means it; the safe answer has the focus.
export function confirmed(title, text, yes) {
  const dialog = $("confirm"), opener = document.activeElement;
  $("confirm-head").textContent = title;
  $("confirm-text").textContent = text;
  $("confirm-yes").textContent = yes;
  dialog.returnValue = "";
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => { if (opener?.isConnected) opener.focus(); resolve(dialog.returnValue === "yes"); }, { once: true });
    dialog.showModal();
    $("confirm-no").focus();
  });
}

// Typing searches after a short pause; an answer that comes too late is dropped.
export function searching(panel, find) {
  const field = $(`${panel}-filter`);
  let waiting = 0, turn = 0;
  const now = async () => {
    const mine = ++turn, isLatest = () => mine === turn;
    try { await find(field.value.trim(), isLatest); } catch (error) { if (isLatest()) told(panel, error.message); }
  };
  field.oninput = () => { clearTimeout(waiting); waiting = setTimeout(now, 200); };
  return now();
}

export function gone(item) {
  const next = item.nextElementSibling || item.previousElementSibling, list = item.parentElement;
  item.remove();
  (next?.querySelector("a, button") || list.parentElement.querySelector("input"))?.focus();
}

function fillRuns() {
  return searching("runs", async (wanted, isLatest) => {
    clearTimeout(timer);
    const { items, more } = await call(`/page/history?limit=200&q=${encodeURIComponent(wanted)}`);
    if (!isLatest()) return;
    $("runs-list").replaceChildren(...items.map((item) => runItem(item, wanted)));
    told("runs", items.length ? (more ? "The newest 200 are shown: look for words to see others." : "") : wanted ? "Nothing of that was asked." : "Nothing was asked yet.");
    if (items.some((item) => item.state === "running")) timer = setTimeout(refresh, AGAIN_MS);
  });
}

// While runs are under way their states are looked up again; rows are changed in place, so that nothing loses the focus.
async function refresh() {
  if ($("runs").hidden) return;
  const wanted = $("runs-filter").value.trim();
  try {
    const { items } = await call(`/page/history?limit=200&q=${encodeURIComponent(wanted)}`);
    for (const item of items) {
      const row = $("runs-list").querySelector(`li[data-id="${item.id}"]`);
      if (row && row.dataset.state !== item.state) row.replaceWith(runItem(item, wanted));
    }
    if (items.some((item) => item.state === "running")) timer = setTimeout(refresh, AGAIN_MS);
  } catch (error) { told("runs", error.message); }
}

function runItem(item, wanted) {
  const link = element("a", { href: `/runs/${item.id}`, textContent: item.question || item.id, className: "q", dir: "auto" });
  const day = item.created ? new Date(item.created).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "";
  const about = element("p", { className: "state" }, element("span", { className: `is-${item.state.split(" ")[0]}`, textContent: STATES[item.state] || item.state }), ` · ${[item.mode, day].filter(Boolean).join(" · ")}`);
  const words = element("div", {}, link, about);
  if (wanted && item.excerpt) words.append(element("p", { className: "excerpt", textContent: item.excerpt, dir: "auto" }));
  const row = element("li", {}, words, element("div", { className: "tools" }, ...acts(item)));
  Object.assign(row.dataset, { id: item.id, state: item.state });
  return row;
}

function acts(item) {
  const act = (text, does) => {
    const made = element("button", { type: "button", textContent: text, className: "quiet" });
    made.setAttribute("aria-label", `${text}: ${item.question || item.id}`.slice(0, 120));
    made.onclick = async () => {
      made.disabled = true;
      try { await does(made.closest("li")); } catch (error) { told("runs", error.message); }
      made.disabled = false;
    };
    return made;
  };
  const made = [];
  if (item.state === "running") made.push(act("Stop", () => stop(item)));
  if (["unfinished", "failed"].includes(item.state)) made.push(act("Resume", () => resume(item)));
  return [...made, act("Delete", (row) => remove(item, row))];
}

async function stop(item) {
  await call(`/v1/runs/${item.id}/stop`, { method: "POST" });
  told("runs", "It was asked to answer now, from what it has read.");
}

async function resume(item) {
  const run = await call(`/v1/runs/${item.id}/resume`, { method: "POST" });
  location.assign(`/runs/${run.id}`);
}

async function remove(item, row) {
  const more = item.state === "running" ? " It is under way and will be cancelled." : "";
  if (!await confirmed("Delete this run?", `“${(item.question || item.id).slice(0, 300)}”: its answer and what it recorded go for good.${more}`, "Delete")) return;
  await call(`/page/history/${item.id}`, { method: "DELETE" });
  gone(row);
  told("runs", "Deleted.");
}
