// The page: ask, watch, read, check. Everything shown is text or HTML that the server made safe; nothing is loaded from elsewhere.
import { ask, clearRun } from "./ask.js";
import { $, call, note, say, state } from "./core.js";
import { showRuns, showSetup } from "./keep.js";
import { showAnswer, showEvidence, tools } from "./read.js";
import { follow, idle } from "./watch.js";

async function open(id) {
  clearRun("");
  state.id = id;
  try {
    const run = await call(`/v1/runs/${id}`);
    $("asked").textContent = run.question; $("question").value = run.question;
    document.title = `${run.question.slice(0, 60)} - nexi`;
    if (run.state === "finished") { idle(); return await showAnswer(); }
    if (run.state === "running") return follow(id);
    idle(); tools();
    note(run.error ? [run.error.message, run.error.cause, run.error.fix].filter(Boolean).join(". ") : `This run is ${run.state}. nexi resume ${id} goes on with it.`, true);
    $("status").textContent = "";
  } catch (error) { note(error.message, true); idle(); }
}

$("ask").addEventListener("submit", ask);
$("question").addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) ask(event); });
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !$("stop").hidden && !$("evidence").open) $("stop").click(); });
$("stop").addEventListener("click", () => state.id && call(`/v1/runs/${state.id}/stop`, { method: "POST" }).then(() => say("Stopping: the answer comes from what was read"), (e) => note(e.message, true)));
$("effort").addEventListener("change", () => { document.querySelector(".deep").hidden = $("effort").value !== "deep"; });
$("answer").addEventListener("click", (event) => {
  const target = event.target.closest("[data-claim]");
  if (target) { event.preventDefault(); showEvidence(Number(target.dataset.claim), Number(target.dataset.n || 0)); }
});
$("copy").addEventListener("click", () => navigator.clipboard?.writeText(state.run?.text || state.text).then(() => say("Copied")));
$("again").addEventListener("click", () => { $("question").value = $("asked").textContent; $("question").focus(); });
$("follow").addEventListener("click", () => { state.continues = state.id; $("question").value = ""; $("question").placeholder = "A follow-up question"; $("question").focus(); });
$("show-runs").addEventListener("click", showRuns);
$("show-setup").addEventListener("click", showSetup);
window.addEventListener("popstate", () => location.reload());
const here = location.pathname.match(/^\/runs\/([0-9a-f]{6})$/);
if (here) open(here[1]); else $("question").focus();
