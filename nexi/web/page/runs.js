// History: the questions that were asked, to find, open, resume, stop and delete.
import { $, call, element } from "./core.js";
import { bindSearchField, confirmAction, removeItem, setPanelMessage } from "./panel.js";

const STATES = { running: "● running", finished: "✓ finished", failed: "✗ failed", unfinished: "… unfinished", damaged: "! damaged", "answer kept": "✓ answer kept" };
const REFRESH_MS = 3000;
let timer = 0;

export function fillRuns() {
  return bindSearchField("runs", async (wanted, isLatest) => {
    clearTimeout(timer);
    const { items, more } = await call(`/page/history?limit=200&q=${encodeURIComponent(wanted)}`);
    if (!isLatest()) return;
    $("runs-list").replaceChildren(...items.map((item) => runItem(item, wanted)));
    setPanelMessage("runs", items.length ? (more ? "The newest 200 are shown: look for words to see others." : "") : wanted ? "Nothing of that was asked." : "Nothing was asked yet.");
    if (items.some((item) => item.state === "running")) timer = setTimeout(refreshRuns, REFRESH_MS);
  });
}

// While runs are under way their states are looked up again; rows are changed in place, so that nothing loses the focus.
async function refreshRuns() {
  if ($("runs").hidden) return;
  const wanted = $("runs-filter").value.trim();
  try {
    const { items } = await call(`/page/history?limit=200&q=${encodeURIComponent(wanted)}`);
    for (const item of items) {
      const row = $("runs-list").querySelector(`li[data-id="${item.id}"]`);
      if (row && row.dataset.state !== item.state) row.replaceWith(runItem(item, wanted));
    }
    if (items.some((item) => item.state === "running")) timer = setTimeout(refreshRuns, REFRESH_MS);
  } catch (error) { setPanelMessage("runs", error.message); }
}

function runItem(item, wanted) {
  const link = element("a", { href: `/runs/${item.id}`, textContent: item.question || item.id, className: "q", dir: "auto" });
  const day = item.created ? new Date(item.created).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "";
  const about = element("p", { className: "state" }, element("span", { className: `is-${item.state.split(" ")[0]}`, textContent: STATES[item.state] || item.state }), ` · ${[item.mode, day].filter(Boolean).join(" · ")}`);
  const words = element("div", {}, link, about);
  if (wanted && item.excerpt) words.append(element("p", { className: "excerpt", textContent: item.excerpt, dir: "auto" }));
  const row = element("li", {}, words, element("div", { className: "tools" }, ...runButtons(item)));
  Object.assign(row.dataset, { id: item.id, state: item.state });
  return row;
}

function runButtons(item) {
  const act = (text, does) => {
    const made = element("button", { type: "button", textContent: text, className: "quiet" });
    made.setAttribute("aria-label", `${text}: ${item.question || item.id}`.slice(0, 120));
    made.onclick = async () => {
      made.disabled = true;
      try { await does(made.closest("li")); } catch (error) { setPanelMessage("runs", error.message); }
      made.disabled = false;
    };
    return made;
  };
  const made = [];
  if (item.state === "running") made.push(act("Stop", () => stopRun(item)));
  if (["unfinished", "failed"].includes(item.state)) made.push(act("Resume", () => resumeRun(item)));
  return [...made, act("Delete", (row) => deleteRun(item, row))];
}

async function stopRun(item) {
  await call(`/v1/runs/${item.id}/stop`, { method: "POST" });
  setPanelMessage("runs", "It was asked to answer now, from what it has read.");
}

async function resumeRun(item) {
  const run = await call(`/v1/runs/${item.id}/resume`, { method: "POST" });
  location.assign(`/runs/${run.id}`);
}

async function deleteRun(item, row) {
  const more = item.state === "running" ? " It is running and will be cancelled." : "";
  if (!await confirmAction("Delete this run?", `“${(item.question || item.id).slice(0, 300)}”: its answer and what it recorded go for good.${more}`, "Delete")) return;
  await call(`/page/history/${item.id}`, { method: "DELETE" });
  removeItem(row);
  setPanelMessage("runs", "Deleted.");
}
