// The plan of a deep run that waits: its tasks can be changed, added, moved and removed before anything is spent on them.
import { $, addNote, call, element, setStatus } from "./core.js";
import { state } from "./state.js";
import { say } from "./texts.js";

const MAX_TASKS = 5;

export function showPlan(event) {
  $("plan-about").textContent = say("plan.about");
  const estimate = event.estimate ? `${event.estimate[0].toUpperCase()}${event.estimate.slice(1)}.` : "";
  $("plan-cost").textContent = estimate && !estimate.includes("$") && state.form?.has_model ? `${estimate} ${say("plan.unpriced")}` : estimate;
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

const button = (text, act) => element("button", { type: "button", className: "quiet", textContent: text, onclick: act });

function taskItem(task) {
  const field = element("textarea", { value: task, rows: 1, maxLength: 1000, dir: "auto" });
  const item = element("li", {}, field, button("↑", () => moveTask(item, -1)), button("↓", () => moveTask(item, 1)), button("×", () => removeTask(item)));
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const step = event.altKey && { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step) { event.preventDefault(); moveTask(item, step); field.focus(); }
    if (event.key === "Enter") { event.preventDefault(); addTask(item); }
    if (event.key === "Backspace" && !field.value && $("plan-tasks").childElementCount > 1) { event.preventDefault(); removeTask(item); }
  });
  return item;
}

function moveTask(item, step) {
  if (step < 0) item.previousElementSibling?.before(item); else item.nextElementSibling?.after(item);
  numberTasks();
}

function removeTask(item) {
  const next = item.previousElementSibling || item.nextElementSibling;
  item.remove();
  numberTasks();
  next?.firstChild.focus();
}

function numberTasks() {
  const items = [...$("plan-tasks").children], isFull = items.length >= MAX_TASKS;
  items.forEach((item, i) => {
    const [field, up, down, remove] = item.children;
    ["task", "up", "down", "remove"].forEach((name, at) => item.children[at].setAttribute("aria-label", say(`plan.${name}`, { n: i + 1 })));
    up.disabled = i === 0;
    down.disabled = i === items.length - 1;
    remove.disabled = items.length === 1;
    remove.title = items.length === 1 ? say("plan.last") : "";
    field.placeholder = say("plan.task", { n: i + 1 });
  });
  $("plan-add").disabled = isFull;
  $("plan-limit").textContent = isFull ? say("plan.limit", { n: MAX_TASKS }) : "";
}

// A new line below one, or at the end; a full plan says why there is none.
export function addTask(after = null) {
  if ($("plan-tasks").childElementCount >= MAX_TASKS) return;
  const item = taskItem("");
  if (after?.parentElement) after.after(item); else $("plan-tasks").append(item);
  numberTasks();
  item.firstChild.focus();
}

export async function acceptPlan() {
  const tasks = [...$("plan-tasks").querySelectorAll("textarea")].map((field) => field.value.trim()).filter(Boolean);
  if (!tasks.length) return addTask();
  try {
    await call(`/v1/runs/${state.id}/plan`, { method: "POST", body: JSON.stringify({ tasks }) });
    hidePlan();
    setStatus(say("plan.begun"));
  } catch (error) { addNote(error.message, true); }
}
