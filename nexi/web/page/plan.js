// The plan of a deep run that waits: its tasks can be changed, added and removed before anything is spent on them.
import { $, call, element, note, say, state } from "./core.js";

const MOST = 5;

export function showPlan(event) {
  $("plan-about").textContent = `Each task gets a researcher of its own${event.estimate ? `: ${event.estimate}` : ""}.`;
  $("plan-tasks").replaceChildren(...event.tasks.map(line));
  $("plan").hidden = false;
  document.body.classList.add("planning");
  counted();
  if (!document.activeElement || ["question", ""].includes(document.activeElement.id)) $("plan-head").focus();
}

export function hidePlan() {
  $("plan").hidden = true;
  document.body.classList.remove("planning");
}

function line(task) {
  const field = element("textarea", { value: task, rows: 1, maxLength: 1000, dir: "auto" });
  const remove = element("button", { type: "button", className: "quiet", textContent: "×" });
  const item = element("li", {}, field, remove);
  field.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); go(); } });
  remove.addEventListener("click", () => { item.remove(); counted(); $("plan-add").focus(); });
  return item;
}

function counted() {
  const items = [...$("plan-tasks").children];
  items.forEach((item, i) => {
    item.firstChild.setAttribute("aria-label", `Task ${i + 1}`);
    item.lastChild.setAttribute("aria-label", `Remove task ${i + 1}`);
    item.lastChild.disabled = items.length === 1;
  });
  $("plan-add").disabled = items.length >= MOST;
}

export function add() {
  const item = line("");
  $("plan-tasks").append(item);
  counted();
  item.firstChild.focus();
}

export async function go() {
  const tasks = [...$("plan-tasks").querySelectorAll("textarea")].map((field) => field.value.trim()).filter(Boolean);
  if (!tasks.length) return add();
  try {
    await call(`/v1/runs/${state.id}/plan`, { method: "POST", body: JSON.stringify({ tasks }) });
    hidePlan();
    say("The research begins");
  } catch (error) { note(error.message, true); }
}
