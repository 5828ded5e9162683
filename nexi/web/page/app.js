// The page: ask, watch, read, check. Everything shown is text or HTML that the server made safe; nothing is loaded from elsewhere.
import { foldActivity, replayWork, showAddressed } from "./activity.js";
import { panelAddress, parseAddress, runAddress, visit } from "./address.js";
import { afterAnswer, ask, askAgain, askQueued, clearRun, continueRun, fillForm, leaveRun, retryRun, showDeepOptions, showOptions, showRecentRuns, stop } from "./ask.js";
import { $, addNote, call, copyText, setStatus, showHint } from "./core.js";
import { watchForFiles } from "./files.js";
import { watchKeys } from "./keys.js";
import { offerNotification, showInTitle, watchTitle } from "./notify.js";
import { showPanel } from "./panel.js";
import { acceptPlan, addTask } from "./plan.js";
import { watchCitations } from "./peek.js";
import { keepDraft, queueQuestion, restoreDraft, showQueued } from "./queue.js";
import { closeEvidence, showAnswer, showReadPages, showRemembered, showTools } from "./read.js";
import { showSource } from "./sources.js";
import { enterSpace, leaveSpace, makeSpace, saveInstructions } from "./spaces.js";
import { loadTimeline, setPreviousRun, setRequest, setRunId, state } from "./state.js";
import { language, prepareNumbers, say } from "./texts.js";
import { applyTheme } from "./theme.js";
import { clearTurns, showThread } from "./thread.js";
import { draw, watchWidth } from "./timeline.js";
import { follow, showFailure, stopFollowing } from "./watch.js";

applyTheme();

const FILLS = { // loaded when they are opened
  runs: async () => (await import("./runs.js")).fillRuns(), knowledge: async () => (await import("./knowledge.js")).fillKnowledge(), check: async () => (await import("./check.js")).fillCheck(), table: async () => (await import("./table.js")).fillTable(), account: async () => (await import("/static/team/account.js")).fillAccount(), setup: async () => (await import("./setup.js")).fillSetup(),
};

async function openRun(id) {
  clearTurns();
  clearRun("");
  setRunId(id);
  try {
    const run = await call(`/v1/runs/${id}`);
    if (id !== state.id) return;
    $("asked").textContent = run.question;
    showInTitle();
    setRequest({ effort: run.effort, mode: run.mode, space: run.space });
    if (run.space) enterSpace(run.space); else leaveSpace();
    if (run.state === "running") {
      loadTimeline(await call(`/page/runs/${id}/timeline`)); // drawn from the log as far as that goes, and from events after that
      return await follow(id);
    }
    replayWork(id).then(showReadPages, () => {}); // the answer is complete without it
    stopFollowing();
    if (run.state === "finished") {
      foldActivity();
      await showAnswer();
      setPreviousRun(state.run.continues || "");
      document.dispatchEvent(new CustomEvent("started"));
      showAddressedSource();
      return document.dispatchEvent(new CustomEvent("answered"));
    }
    if (run.error || run.state === "stopped") return showFailure({ code: run.code, ...run.error, stop: run.stop });
    showTools();
    addNote(say("app.ended", { state: say(`run.${run.state}`) }), true);
    setStatus("");
  } catch (error) {
    if (id !== state.id) return;
    stopFollowing();
    if (await showRemembered(id)) return;
    if (error.status === 404) return showMissing(id);
    addNote(error.message, true);
    setStatus("");
  }
}

// An address that no run has says so, and what can be done.
function showMissing(id) {
  leaveRun();
  document.title = "nexi";
  $("missing-id").textContent = id;
  $("missing").hidden = false;
  $("missing-head").focus();
}

// Shows what the address names; a run that is shown already stays as it is.
function showAddress() {
  const { panel = "", run, missing, space } = parseAddress(location.pathname);
  $("missing").hidden = true;
  if (run && run !== state.id) openRun(run);
  else if (missing) showMissing(missing);
  else if (!run && !panel) { leaveRun(); showSpace(space); }
  else if (run) { showAddressed(); showAddressedSource(); }
  showPanel(panel, FILLS[panel]);
  if (!run && !panel && !missing) $("question").focus();
}

// A space, or none; the start page lists what was asked there.
function showSpace(address = "") {
  if (address) enterSpace(address); else leaveSpace();
  if (state.form && !state.form.first_run) showRecentRuns();
}

function showAddressedSource() { const number = location.hash.match(/^#source-(\d+)$/)?.[1]; if (number) showSource(Number(number)); }

// A panel and back to what was shown before it.
function togglePanel(name) {
  visit($(name).hidden ? panelAddress(name) : runAddress(state.id));
  showAddress();
}

function findInHistory() {
  if ($("runs").hidden) togglePanel("runs");
  $("runs-filter").focus();
}

const copy = (text, words) => copyText(text).then(() => setStatus(words), (error) => addNote(error.message, true));
// A link for others, or the end of it.
async function publish() {
  const path = `/page/runs/${state.id}/share`, isShared = $("publish").dataset.shared;
  try {
    if (isShared) await call(path, { method: "DELETE" }); else await copy(location.origin + (await call(path, { method: "POST" })).path, say("app.shared"));
    $("publish").dataset.shared = isShared ? "" : "1";
    $("publish").textContent = say(isShared ? "app.share" : "app.unshare");
    if (isShared) setStatus(say("app.unshared"));
  } catch (error) { addNote(error.message, true); }
}

// What needs no search is answered while it is typed; Enter asks all the same.
async function showInstant() {
  const text = $("question").value, found = /\d|\b(time|uhrzeit|hora|heure)\b/i.test(text) && (await import("./instant.js")).answerInstantly(text, new Date(), language());
  if (text !== $("question").value) return;
  $("instant").textContent = found ? say(`instant.${found.kind}`, { value: found.value }) : "";
  $("instant").hidden = !found;
}

// A question in the address is asked where the browser itself brought it (the server sees to that), else only filled in.
function takeAddressedQuestion() {
  const given = new URLSearchParams(location.search), asked = given.get("q") || "", text = asked || ["draft", "link"].map((name) => given.get(name)).filter(Boolean).join(" ") || given.get("title") || "";
  if (location.pathname !== "/" || !text) return;
  history.replaceState(null, "", "/");
  $("question").value = text;
  showInstant();
  if (asked) ask();
}

// Installed, the page opens without a network; answers are kept only in a browser that is its owner's alone.
async function keepShell() {
  if (!("serviceWorker" in navigator) || !state.form) return;
  try {
    await navigator.serviceWorker.register(`/static/worker.js${state.form.keeps_offline ? "?answers" : ""}`, { scope: "/" });
    const files = performance.getEntriesByType("resource").map((one) => new URL(one.name)).filter((url) => url.origin === location.origin && url.pathname.startsWith("/static/"));
    (await navigator.serviceWorker.ready).active.postMessage(files.map((url) => url.pathname));
  } catch { /* the page works without it */ }
}

// Only a team has accounts.
async function startTeam() { if (state.form.team) await (await import("/static/team/start.js")).startTeam(); }

const on = (id, what, act) => $(id).addEventListener(what, act);

on("ask", "submit", ask);
on("question", "keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) ask(event); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.querySelector("dialog:modal")) return; // one over the page closes itself
  if ($("evidence").open) closeEvidence(); else if (!$("stop").hidden) stop();
});
on("stop", "click", stop);
on("space-save", "click", saveInstructions);
on("space-new", "submit", makeSpace);
on("effort", "change", showDeepOptions);
on("more", "click", () => showOptions($("options").hidden));
on("fresh", "click", () => { continueRun(""); $("question").focus(); });
on("examples", "click", (event) => { const one = event.target.closest("button"); if (one) { $("question").value = one.textContent; if (one.dataset.focus) $("focus").value = one.dataset.focus; ask(); } });
on("copy", "click", () => copy(state.run?.text || state.text, say("app.copied")));
on("share", "click", () => copy(location.href, say("app.linked")));
on("publish", "click", publish);
on("again", "click", () => { continueRun(state.before); $("question").value = $("asked").textContent; $("question").focus(); });
on("follow", "click", () => { continueRun(state.id); $("question").focus(); });
document.addEventListener("wants-turn", ({ detail }) => { continueRun(detail.continues); $("question").value = detail.question; $("question").focus(); });
on("retry", "click", askAgain);
on("plan-add", "click", () => addTask());
on("plan-go", "click", acceptPlan);
on("plan-no", "click", stop);
for (const name of Object.keys(FILLS)) on(`show-${name}`, "click", () => togglePanel(name));
on("question", "input", keepDraft);
on("question", "input", showInstant);
on("queued-no", "click", () => queueQuestion(""));
document.addEventListener("answered", () => { showInTitle("done"); offerNotification(false); afterAnswer(); askQueued(true); });
document.addEventListener("failed", (event) => { showInTitle(event.detail); offerNotification(false); askQueued(false); });
document.addEventListener("planned", (event) => { showInTitle(event.detail ? "waiting" : ""); offerNotification(true); });
document.addEventListener("started", () => { showQueued(); showThread().catch(() => {}); }); // the run is complete without it
document.addEventListener("wants-retry", () => retryRun());
document.addEventListener("wants-knowledge", () => retryRun("local"));
document.addEventListener("wants-setup", () => togglePanel("setup"));
document.addEventListener("configured", () => fillForm().catch(() => {})); // what was saved is in force without it
window.addEventListener("popstate", showAddress);
watchWidth();
$("cost").addEventListener("toggle", draw);
$("cost").firstElementChild.addEventListener("click", () => setTimeout(() => $("cost").scrollIntoView({ block: "nearest" }))); // the rail ends with it
watchCitations();
watchForFiles();
showDeepOptions();
watchTitle();
watchKeys({ find: findInHistory });
restoreDraft();
showAddress();
takeAddressedQuestion();
prepareNumbers();
if (!navigator.onLine) showHint(say("app.offline"));
fillForm().then(() => { keepShell(); startTeam().catch(() => {}); }).catch((error) => addNote(error.message, true)); // the page is complete without the account
