// Asking: the form as an order, a run from it, and what can be asked after an answer.
import { $, call, element, hint, note, state } from "./core.js";
import { hidePlan } from "./plan.js";
import { follow, idle, showSpent } from "./watch.js";

export function orderFromForm() {
  const effort = $("effort").value, site = (word) => word.replace(/^(-?)[a-z]+:\/\//i, "$1").replace(/\/+$/, "");
  const words = $("sites").value.split(/[\s,]+/).map(site).filter(Boolean);
  const options = { time_range: $("time").value, focus: $("focus").value };
  const sites = words.filter((w) => !w.startsWith("-")), excluded = words.filter((w) => w.startsWith("-")).map((w) => w.slice(1)).filter(Boolean);
  if (sites.length) options.sites = sites;
  if (excluded.length) options.excluded_sites = excluded;
  if ($("model").value) options.model = $("model").value;
  if (effort === "deep") Object.assign(options, { depth: Number($("depth").value), plan: $("planned").checked }); else options.effort = effort;
  const order = { question: $("question").value.trim(), mode: effort === "deep" ? "research" : "search", options };
  if (state.continues) order.continues = state.continues;
  return order;
}

export async function ask(event) {
  event?.preventDefault();
  if (!$("go").disabled) await start(orderFromForm());
}

async function start(order) {
  if (!order.question) return $("question").focus();
  clearRun(order.question);
  try {
    const run = await call("/v1/runs", { method: "POST", body: JSON.stringify(order) });
    history.pushState({}, "", `/runs/${run.id}`);
    $("question").value = "";
    await follow(run.id);
  } catch (error) { note(error.message, true); $("status").textContent = ""; idle(); }
}

export function clearRun(question) {
  state.source?.close();
  Object.assign(state, { id: "", last: "", text: "", stale: "", started: performance.now(), bars: [], known: 0, people: new Map(), source: null, run: null, asked: {}, before: "", spent: {} });
  for (const id of ["answer", "notes", "source-list", "timeline", "researchers", "exports", "next-list", "spent"]) $(id).replaceChildren();
  for (const id of ["sources", "conflicts", "left-out", "timing", "tools", "researchers", "next", "before", "hint"]) $(id).hidden = true;
  delete $("answer").dataset.cut;
  hidePlan();
  options(false);
  continues("");
  $("figures").textContent = ""; $("status").textContent = "Starting"; $("asked").textContent = question;
  $("run").hidden = false;
  for (const section of document.querySelectorAll("main > section:not(#run)")) section.hidden = true;
  for (const button of document.querySelectorAll("nav [aria-expanded]")) button.setAttribute("aria-expanded", "false");
  $("stop").hidden = false; $("go").disabled = true;
  document.body.classList.add("asked");
  document.body.classList.remove("keeping");
  document.title = `${question.slice(0, 60)} - nexi`;
  showSpent({});
}

// What is typed next goes on from a run, or from nothing.
export function continues(id) {
  state.continues = id;
  $("continuing").hidden = !id;
  $("question").placeholder = id ? "Ask a follow-up" : "Ask anything";
}

// the form

export function options(shown) {
  $("options").hidden = !shown;
  $("more").setAttribute("aria-expanded", String(shown));
  document.body.classList.toggle("choosing", shown);
}

export async function fillForm() {
  const form = state.form = await call("/page/form");
  $("effort").value = form.effort;
  $("model").options[0].textContent = form.has_model ? form.model : "Built-in";
  if (!form.has_model && !state.id) {
    hint("No model yet: the built-in one answers with passages. Add a model: ");
    $("hint").append(element("code", { textContent: form.add_a_model }));
  }
  const { models } = await call("/page/models");
  const own = form.has_model ? form.model : "extractive", others = models.filter((name) => name !== own);
  const named = (name) => element("option", { value: name, textContent: name === "extractive" ? "Built-in, no model" : name });
  $("model").append(...others.map(named));
  $("other").replaceChildren(...[own, ...others].map(named));
}

export function deepOptions() {
  const deep = $("effort").value === "deep";
  for (const one of document.querySelectorAll(".deep")) one.hidden = !deep;
}

// after an answer

export async function afterAnswer() {
  const run = state.run, id = run.id || state.id;
  continues(id);
  if (!$("status").textContent) $("status").textContent = `Answered ${run.model === "extractive" ? "without a model" : `by ${run.model}`}`;
  showSpent({ seconds: run.seconds, tokens: run.tokens, cost: run.cost, calls: run.model_calls, pages: run.pages });
  if (!state.form?.suggestions) return;
  try {
    const { suggestions } = await call(`/page/runs/${id}/suggestions`);
    if (state.id !== id || !suggestions.length) return;
    $("next-list").replaceChildren(...suggestions.map((text) => {
      const button = element("button", { type: "button", textContent: text, dir: "auto" });
      button.addEventListener("click", () => { $("question").value = text; continues(id); ask(); });
      return element("li", {}, button);
    }));
    $("next").hidden = false;
  } catch { /* an answer without them is whole */ }
}

export async function showBefore() {
  if (!state.before) return;
  const id = state.before, link = $("before").querySelector("a");
  link.href = `/runs/${id}`;
  try { link.textContent = (await call(`/v1/runs/${id}`)).question; } catch { return; }
  $("before").hidden = state.before !== id;
}

export function askAgain() {
  const asked = state.asked, mode = asked.mode || state.run?.mode || "search", options = { model: $("other").value };
  if (mode === "search" && asked.effort) options.effort = asked.effort;
  if (asked.only_local) options.focus = "local";
  for (const name of ["sites", "excluded_sites", "time_range", "focus"]) if (asked.query?.[name]?.length) options[name] = asked.query[name];
  const order = { question: $("asked").textContent, mode: mode === "research" ? "research" : "search", options };
  if (state.before) order.continues = state.before;
  start(order);
}
