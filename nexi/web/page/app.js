// The page: ask, watch, read, check. Everything shown is text or HTML that the server made safe; nothing is loaded from elsewhere.
import { foldActivity, replayWork } from "./activity.js";
import { afterAnswer, ask, askAgain, clearRun, continueRun, fillForm, showDeepOptions, showOptions, showPreviousRun } from "./ask.js";
import { $, addNote, call, copyText, joinProblem, setStatus } from "./core.js";
import { watchForFiles } from "./files.js";
import { fillKnowledge } from "./knowledge.js";
import { togglePanel } from "./panel.js";
import { acceptPlan, addTask } from "./plan.js";
import { watchCitations } from "./peek.js";
import { closeEvidence, showAnswer, showEvidence, showReadPages, showRemembered, showTools } from "./read.js";
import { fillRuns } from "./runs.js";
import { fillSetup } from "./setup.js";
import { loadTimeline, setRequest, setRunId, state } from "./state.js";
import { draw, drawSoon } from "./timeline.js";
import { follow, stopFollowing } from "./watch.js";

async function openRun(id) {
  clearRun("");
  setRunId(id);
  try {
    const run = await call(`/v1/runs/${id}`);
    $("asked").textContent = run.question;
    document.title = `${run.question.slice(0, 60)} - nexi`;
    setRequest({ effort: run.effort, mode: run.mode });
    if (run.state !== "running") replayWork(id).then(showReadPages, () => {}); // the answer is complete without it
    if (run.state === "finished") { foldActivity(); stopFollowing(); await showAnswer(); return document.dispatchEvent(new CustomEvent("answered")); }
    if (run.state === "running") {
      loadTimeline(await call(`/page/runs/${id}/timeline`)); // drawn from the log as far as that goes, and from events after that
      return await follow(id);
    }
    stopFollowing(); showTools();
    addNote(run.error ? joinProblem(run.error.message, run.error.cause, run.error.fix) : `This run is ${run.state}.`, true);
    setStatus("");
  } catch (error) {
    stopFollowing();
    if (!await showRemembered(id)) { addNote(error.message, true); setStatus(""); }
  }
}

const copy = (text, words) => copyText(text).then(() => setStatus(words), (error) => addNote(error.message, true));
const stop = () => state.id && call(`/v1/runs/${state.id}/stop`, { method: "POST" }).then(() => setStatus("Stopping: the answer comes from what was read"), (e) => addNote(e.message, true));
const on = (id, what, act) => $(id).addEventListener(what, act);

on("ask", "submit", ask);
on("question", "keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) ask(event); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.querySelector("dialog:modal")) return; // one over the page closes itself
  if ($("evidence").open) closeEvidence(); else if (!$("stop").hidden) stop();
});
on("stop", "click", stop);
on("effort", "change", showDeepOptions);
on("more", "click", () => showOptions($("options").hidden));
on("fresh", "click", () => { continueRun(""); $("question").focus(); });
on("examples", "click", (event) => { const one = event.target.closest("button"); if (one) { $("question").value = one.textContent; ask(); } });
on("answer", "click", (event) => {
  const target = event.target.closest("[data-claim]");
  if (target) { event.preventDefault(); showEvidence(Number(target.dataset.claim), Number(target.dataset.n || 0)); }
});
on("copy", "click", () => copy(state.run?.text || state.text, "Copied"));
on("share", "click", () => copy(location.href, "The link is copied"));
on("again", "click", () => { continueRun(state.before); $("question").value = $("asked").textContent; $("question").focus(); });
on("follow", "click", () => { continueRun(state.id); $("question").focus(); });
on("retry", "click", askAgain);
on("plan-add", "click", addTask);
on("plan-go", "click", acceptPlan);
on("plan-no", "click", stop);
on("show-runs", "click", () => togglePanel("runs", fillRuns));
on("show-knowledge", "click", () => togglePanel("knowledge", fillKnowledge));
on("show-setup", "click", () => togglePanel("setup", fillSetup));
document.addEventListener("answered", afterAnswer);
document.addEventListener("started", showPreviousRun);
window.addEventListener("popstate", () => location.reload());
window.addEventListener("resize", drawSoon);
$("cost").addEventListener("toggle", draw);
watchCitations();
watchForFiles();
showDeepOptions();
const here = location.pathname.match(/^\/runs\/([0-9a-f]{6})$/);
if (here) openRun(here[1]); else $("question").focus();
fillForm().catch((error) => addNote(error.message, true));
