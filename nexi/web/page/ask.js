// Asking: a run from the form, and what can be asked after an answer.
import { hideEmptyActivity, resetActivity } from "./activity.js";
import { runAddress, visit } from "./address.js";
import { $, addNote, call, element, setStatus, showHint } from "./core.js";
import { buildOrder, buildRetryOrder } from "./order.js";
import { showPanel } from "./panel.js";
import { hidePlan } from "./plan.js";
import { showProblem } from "./problem.js";
import { clearDraft, queuedQuestion, queueQuestion, showQueued } from "./queue.js";
import { closeEvidence } from "./read.js";
import { showDefaults } from "./spaces.js";
import { showSpent } from "./spent.js";
import { resetRun, setContinuedRun, setForm, state, wantStop } from "./state.js";
import { say } from "./texts.js";
import { clearTurns, keepTurn } from "./thread.js";
import { follow, stopFollowing } from "./watch.js";

const formValues = () => ({
  question: $("question").value, effort: $("effort").value, sites: $("sites").value, time: $("time").value, focus: $("focus").value,
  model: $("model").value, depth: $("depth").value, planned: $("planned").checked, space: state.space,
});

export async function ask(event) {
  event?.preventDefault();
  if (!$("go").disabled) return start(buildOrder(formValues(), state.continues));
  const text = $("question").value.trim();
  if (!text || !state.id) return;
  queueQuestion(text);
  $("question").value = "";
  clearDraft();
}

// The question that waited is asked as a follow-up; after a run without an answer it goes back into the field.
export function askQueued(isAnswered) {
  const text = queuedQuestion();
  queueQuestion("");
  if (!text) return;
  $("question").value = text;
  if (isAnswered) { continueRun(state.id); ask(); }
}

let lastOrder = null;

// `isClear` where nothing has to be asked back: research that is new is asked back once, a search after its answer.
async function start(order, isClear = order.mode !== "research" || Boolean(order.continues)) {
  if (!order.question) return $("question").focus();
  lastOrder = order;
  keepTurn(order.continues);
  clearRun(order.question);
  try {
    if (!isClear && await askBack(order)) return;
    const run = await call("/v1/runs", { method: "POST", body: JSON.stringify(order) });
    visit(runAddress(run.id));
    $("question").value = "";
    clearDraft();
    if (state.isStopWanted) sendStop(run.id);
    await follow(run.id);
  } catch (error) { showProblem(error.problem?.message ? error.problem : { message: error.message }); $("status").textContent = ""; stopFollowing(); hideEmptyActivity(); $("cost").open = false; }
}

// Shows what the question may mean; false where it is clear, or where that could not be found out.
async function askBack(order) {
  const open = await call("/page/open-question", { method: "POST", body: JSON.stringify(order) }).catch(() => null);
  if (state.isStopWanted) { leaveRun(); return true; }
  if (!open?.readings.length && !open?.kind) return false;
  (await import("./readings.js")).showReadings(open, order.question, (question) => start({ ...order, question }, true));
  return true;
}

// Said before it is sent: the end of the run may come before the reply.
export function stop() {
  setStatus(say("app.stopping"));
  if (state.id) sendStop(state.id); else wantStop();
}

const sendStop = (id) => call(`/v1/runs/${id}/stop`, { method: "POST" }).catch((error) => addNote(error.message, true));

export function clearRun(question) {
  resetRun();
  showQueued();
  resetActivity(true);
  for (const id of ["answer", "notes", "source-list", "read-list", "timeline", "exports", "next-list", "spent"]) $(id).replaceChildren();
  for (const id of ["sources", "conflicts", "left-out", "timing", "tools", "next", "hint", "toc", "missing", "pictures"]) $(id).hidden = true;
  delete $("answer").dataset.cut;
  $("cost").open = matchMedia("(min-width: 62.01rem)").matches; // below the text it waits until it is wanted
  $("also-read").hidden = true;
  closeEvidence();
  hidePlan();
  $("readings").hidden = true;
  showOptions(false);
  continueRun("");
  $("verdict").hidden = $("answered").hidden = $("instant").hidden = true; $("status").textContent = say("ask.starting"); $("asked").textContent = question;
  $("run").hidden = false;
  showPanel("");
  $("stop").hidden = false; $("go").disabled = true;
  document.body.classList.add("asked");
  document.title = `${question.slice(0, 60)} - nexi`;
  showSpent({});
}

// Back to the start, with nothing of a run.
export function leaveRun() {
  stopFollowing();
  resetRun();
  continueRun("");
  closeEvidence();
  hidePlan();
  $("run").hidden = true;
  clearTurns();
  document.body.classList.remove("asked");
  document.title = "nexi";
}

// What is typed next continues a run, or begins a new conversation.
export function continueRun(id) {
  setContinuedRun(id);
  $("continuing").hidden = !id;
  $("question").placeholder = say(id ? "ask.follow_up" : "ask.anything");
}

// the form

export function showOptions(shown) {
  $("options").hidden = !shown;
  $("more").setAttribute("aria-expanded", String(shown));
  document.body.classList.toggle("choosing", shown);
}

export async function fillForm() {
  const effort = $("effort"), shown = effort.value, form = await call("/page/form");
  setForm(form);
  if (state.run?.kept) $("publish").hidden = !form.share || Boolean(state.run.of_another);
  showDefaults(effort.value === shown ? "" : effort.value);
  $("welcome").hidden = true;
  if (!form.first_run && !state.id) showRecentRuns();
  if (form.first_run) (await import("./welcome.js")).showWelcome(form);
  else if (!form.has_model && !state.id) {
    showHint(`${say("ask.add_model")} `);
    $("hint").append(element("a", { href: "/setup", textContent: say("card.setup") }));
  } else if (form.has_model && !state.id) showHint("");
  const { models } = await call("/page/models");
  const own = form.has_model ? form.model : "extractive", others = models.filter((name) => name !== own);
  const named = (name) => element("option", { value: name, textContent: name === "extractive" ? say("ask.no_model") : name });
  $("model").replaceChildren($("model").options[0], ...others.map(named));
  $("other").replaceChildren(...[own, ...others].map(named));
}

export const showRecentRuns = () => import("./recent.js").then(({ showRecent }) => showRecent()).catch(() => {}); // the form is complete without them

export function showDeepOptions() {
  const deep = $("effort").value === "deep";
  for (const one of document.querySelectorAll(".deep")) one.hidden = !deep;
}

// after an answer

export async function afterAnswer() {
  const run = state.run, id = run.id || state.id;
  continueRun(id);
  const verb = `ask.${run.answered === "no" ? "written" : "answered"}`;
  if (!$("status").textContent) $("status").textContent = run.model === "extractive" ? say(`${verb}_alone`) : say(verb, { model: run.model });
  showSpent({ seconds: run.seconds, tokens: run.tokens, cost: run.cost, calls: run.model_calls, pages: run.pages });
  if (!state.form?.suggestions) return;
  try {
    const { suggestions } = await call(`/page/runs/${id}/suggestions`);
    if (state.id !== id || !suggestions.length) return;
    $("next-list").replaceChildren(...suggestions.map((text) => {
      const button = element("button", { type: "button", textContent: text, dir: "auto" });
      button.addEventListener("click", () => { $("question").value = text; continueRun(id); ask(); });
      return element("li", {}, button);
    }));
    $("next").hidden = false;
  } catch { /* the answer is complete without them */ }
}

// The same question as before, from what is stored where that is wanted.
export function retryRun(focus = "") {
  const order = lastOrder?.question === $("asked").textContent ? lastOrder : buildRetryOrder($("asked").textContent, state.asked, { model: state.asked.model, continues: state.before });
  return start(focus ? { ...order, options: { ...order.options, focus } } : order, true);
}

export function askAgain() {
  return start(buildRetryOrder($("asked").textContent, state.asked, { model: $("other").value, mode: state.run?.mode, continues: state.before }), true);
}
