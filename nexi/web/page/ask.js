// Asking: the form as an order, and a run from it.
import { $, call, note, state } from "./core.js";
import { follow, idle } from "./watch.js";

export function orderFromForm() {
  const effort = $("effort").value, words = $("sites").value.split(/[\s,]+/).filter(Boolean);
  const options = { time_range: $("time").value };
  const sites = words.filter((w) => !w.startsWith("-")), excluded = words.filter((w) => w.startsWith("-")).map((w) => w.slice(1));
  if (sites.length) options.sites = sites;
  if (excluded.length) options.excluded_sites = excluded;
  if (effort === "deep") options.depth = Number($("depth").value); else options.effort = effort;
  const order = { question: $("question").value.trim(), mode: effort === "deep" ? "research" : "search", options };
  if (state.continues) order.continues = state.continues;
  return order;
}

export async function ask(event) {
  event?.preventDefault();
  const order = orderFromForm();
  if (!order.question) return;
  clearRun(order.question);
  try {
    const run = await call("/v1/runs", { method: "POST", body: JSON.stringify(order) });
    history.pushState({}, "", `/runs/${run.id}`);
    follow(run.id);
  } catch (error) { note(error.message, true); idle(); }
}

export function clearRun(question) {
  state.source?.close();
  Object.assign(state, { id: "", last: "", text: "", started: performance.now(), bars: [], people: new Map(), source: null, continues: "" });
  for (const id of ["answer", "notes", "source-list", "timeline", "researchers", "exports"]) $(id).replaceChildren();
  for (const id of ["sources", "timing", "tools", "researchers"]) $(id).hidden = true;
  $("figures").textContent = ""; $("status").textContent = "Starting"; $("asked").textContent = question;
  $("run").hidden = false; $("runs").hidden = true; $("setup").hidden = true;
  $("stop").hidden = false; $("go").disabled = true; $("hint").hidden = true;
  document.title = `${question.slice(0, 60)} - nexi`;
}
