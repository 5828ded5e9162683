// A conversation: the turns before the run that is shown stand above it, each with its citations, sources and files.
import { $, call, element } from "./core.js";
import { exportLink, showStored } from "./read.js";
import { finishedCard, nameFiles, translateMarks } from "./sources.js";
import { setTurns, state } from "./state.js";
import { say } from "./texts.js";
import { describeRun } from "./verdict.js";

function turnItem(run) {
  const answer = element("div", { className: "turn-answer", innerHTML: run.html || "", dir: "auto" }); // made safe by the server
  translateMarks(answer, run.claims);
  const item = element("li", {}, element("details", { open: true }, element("summary", {}, element("span", { textContent: run.question, dir: "auto" })), answer, ...(run.html ? aboutTurn(run) : []), turnTools(run)));
  item.dataset.id = run.id;
  return item;
}

function aboutTurn(run) {
  const { claims, kind, line } = describeRun(run), cards = run.sources.map((source) => finishedCard(source, showStored, run));
  for (const card of cards) card.removeAttribute("id"); // the numbers of the run that is shown have it
  return [
    ...(claims.length ? [element("p", { className: `turn-verdict is-${kind}`, textContent: line })] : []),
    ...(cards.length ? [element("details", { className: "turn-sources" }, element("summary", { textContent: say("count.sources", { n: cards.length }) }), element("ol", { className: "cards" }, ...cards))] : []),
  ];
}

// Its question again in other words, or another question from here: both begin a branch of the conversation.
function turnTools(run) {
  const button = (name, continues, question) => element("button", { type: "button", className: "quiet", textContent: say(name), onclick: () => document.dispatchEvent(new CustomEvent("wants-turn", { detail: { continues, question } })) });
  const tools = element("p", { className: "tools turn-tools" }, button("thread.edit", run.continues || "", run.question), ...(run.html ? [button("thread.fork", run.id, "")] : []), element("a", { href: `/runs/${run.id}`, textContent: say("thread.open") }));
  if (run.kept && run.exports?.length) tools.append(element("span", { className: "turn-exports" }, ...run.exports.map((one) => exportLink(one, run.id))));
  return tools;
}

function drawTurns(runs) {
  setTurns(runs);
  $("thread").replaceChildren(...runs.map(turnItem));
}

export const clearTurns = () => drawTurns([]);

// The answer that is shown goes above the question that follows it up; any other thread goes away.
export function keepTurn(continues) {
  if (!continues || continues !== state.id || !state.run) return clearTurns();
  setTurns([...state.turns.values(), state.run]);
  $("thread").append(turnItem(state.run));
}

// After a reload the turns before are read again; what stands there already stays.
export async function showThread() {
  const id = state.id;
  if (!state.before) return;
  if ($("thread").lastElementChild?.dataset.id !== state.before) {
    const { turns } = await call(`/page/runs/${id}/thread`);
    if (id !== state.id) return;
    drawTurns(turns.map(nameFiles));
  }
  if (!location.hash) $("asked").scrollIntoView({ block: "start" });
}
