// The plan of a deep run that waits: its tasks can be changed, added and removed before anything is spent on them.
import { $, addNote, call, element, setStatus } from "./core.js";
import { state } from "./state.js";

const MAX_TASKS = 5;

export function showPlan(event) {
  $("plan-about").textContent = `Each task gets a researcher of its own${event.estimate ? `: ${event.estimate}` : ""}.`;
  $("plan-tasks").replaceChildren(...event.tasks.map(taskItem));
  $("plan").hidden = false;
  document.body.classList.add("planning");
  numberTasks();
  if (!document.activeElement || ["question", ""].includes(document.activeElement.id)) $("plan-head").focus();
}

export function hidePlan() {
  $("plan").hidden = true;
  document.body.classList.remove("planning");
}

function taskItem(task) {
  const field = element("textarea", { value: task, rows: 1, maxLength: 1000, dir: "auto" });
  const remove = element("button", { type: "button", className: "quiet", textContent: "×" });
  const item = element("li", {}, field, remove);
  field.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); acceptPlan(); } });
  remove.addEventListener("click", () => { item.remove(); numberTasks(); $("plan-add").focus(); });
  return item;
}

function numberTasks() {
  const items = [...$("plan-tasks").children];
  items.forEach((item, i) => {
    item.firstChild.setAttribute("aria-label", `Task ${i + 1}`);
    item.lastChild.setAttribute("aria-label", `Remove task ${i + 1}`);
    item.lastChild.disabled = items.length === 1;
  });
  $("plan-add").disabled = items.length >= MAX_TASKS;
}

export function addTask() {
  const item = taskItem("");
  $("plan-tasks").append(item);
  numberTasks();
  item.firstChild.focus();
}

export async function acceptPlan() {
  const tasks = [...$("plan-tasks").querySelectorAll("textarea")].map((field) => field.value.trim()).filter(Boolean);
  if (!tasks.length) return addTask();
  try {
    await call(`/v1/runs/${state.id}/plan`, { method: "POST", body: JSON.stringify({ tasks }) });
    hidePlan();
    setStatus("The research begins");
  } catch (error) { addNote(error.message, true); }
}
