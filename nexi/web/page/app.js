// The page: ask, watch, read, check. Everything shown is text or HTML that the server made safe; nothing is loaded from elsewhere.
import { afterAnswer, ask, askAgain, clearRun, continues, deepOptions, fillForm, options, showBefore } from "./ask.js";
import { $, call, copyText, note, say, state } from "./core.js";
import { watchForFiles } from "./files.js";
import { showKnowledge, showRuns, showSetup } from "./keep.js";
import { add, go } from "./plan.js";
import { showAnswer, showEvidence, showRemembered, tools } from "./read.js";
import { drawSoon } from "./timeline.js";
import { follow, idle } from "./watch.js";

async function open(id) {
  clearRun("");
  state.id = id;
  try {
    const run = await call(`/v1/runs/${id}`);
    $("asked").textContent = run.question;
    document.title = `${run.question.slice(0, 60)} - nexi`;
    state.asked = { effort: run.effort, mode: run.mode };
    if (run.state === "finished") { idle(); await showAnswer(); return document.dispatchEvent(new CustomEvent("answered")); }
    if (run.state === "running") { await takeUp(id); return await follow(id); }
    idle(); tools();
    note(run.error ? [run.error.message, run.error.cause, run.error.fix].filter(Boolean).join(". ") : `This run is ${run.state}.`, true);
    say("");
  } catch (error) {
    idle();
    if (!await showRemembered(id)) { note(error.message, true); say(""); }
  }
}

// A run under way is drawn from its log as far as that goes, and from its events after that.
async function takeUp(id) {
  const { bars, seconds, facts } = await call(`/page/runs/${id}/timeline`);
  Object.assign(state, { bars, known: facts, started: performance.now() - seconds * 1000 });
}

const copied = (text, words) => copyText(text).then(() => say(words), (error) => note(error.message, true));
const stop = () => state.id && call(`/v1/runs/${state.id}/stop`, { method: "POST" }).then(() => say("Stopping: the answer comes from what was read"), (e) => note(e.message, true));
const on = (id, what, act) => $(id).addEventListener(what, act);

on("ask", "submit", ask);
on("question", "keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) ask(event); });
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !$("stop").hidden && !document.querySelector("dialog[open]")) stop(); });
on("stop", "click", stop);
on("effort", "change", deepOptions);
on("more", "click", () => options($("options").hidden));
on("fresh", "click", () => { continues(""); $("question").focus(); });
on("examples", "click", (event) => { const one = event.target.closest("button"); if (one) { $("question").value = one.textContent; ask(); } });
on("answer", "click", (event) => {
  const target = event.target.closest("[data-claim]");
  if (target) { event.preventDefault(); showEvidence(Number(target.dataset.claim), Number(target.dataset.n || 0)); }
});
on("copy", "click", () => copied(state.run?.text || state.text, "Copied"));
on("share", "click", () => copied(location.href, "The link is copied"));
on("again", "click", () => { continues(state.before); $("question").value = $("asked").textContent; $("question").focus(); });
on("follow", "click", () => { continues(state.id); $("question").focus(); });
on("retry", "click", askAgain);
on("plan-add", "click", add);
on("plan-go", "click", go);
on("plan-no", "click", stop);
on("show-runs", "click", showRuns);
on("show-knowledge", "click", showKnowledge);
on("show-setup", "click", showSetup);
document.addEventListener("answered", afterAnswer);
document.addEventListener("started", showBefore);
window.addEventListener("popstate", () => location.reload());
window.addEventListener("resize", drawSoon);
watchForFiles();
deepOptions();
const here = location.pathname.match(/^\/runs\/([0-9a-f]{6})$/);
if (here) open(here[1]); else $("question").focus();
fillForm().catch((error) => note(error.message, true));
