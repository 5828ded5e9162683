// A conversation: the questions and answers before the run that is shown stand above it.
import { $, call, element } from "./core.js";
import { state } from "./state.js";
import { say } from "./texts.js";

function turnItem(id, question, html) {
  const answer = element("div", { className: "turn-answer", innerHTML: html, dir: "auto" }); // made safe by the server
  for (const extra of answer.querySelectorAll(".copy, .check")) extra.remove();
  for (const button of answer.querySelectorAll("button")) button.replaceWith(button.textContent);
  for (const one of answer.querySelectorAll("[id]")) one.removeAttribute("id");
  const turn = element("details", { open: true }, element("summary", {}, element("span", { textContent: question, dir: "auto" })), answer, element("p", {}, element("a", { href: `/runs/${id}`, textContent: say("thread.check") })));
  const item = element("li", {}, turn);
  item.dataset.id = id;
  return item;
}

// The answer that is shown goes above the question that follows it up; any other thread goes away.
export function keepTurn(continues) {
  if (!continues || continues !== state.id || !state.run) return $("thread").replaceChildren();
  $("thread").append(turnItem(state.id, $("asked").textContent, $("answer").innerHTML));
}

// After a reload the turns before are read again; what stands there already stays.
export async function showThread() {
  const id = state.id;
  if (!state.before) return;
  if ($("thread").lastElementChild?.dataset.id !== state.before) {
    const { turns } = await call(`/page/runs/${id}/thread`);
    if (id !== state.id) return;
    $("thread").replaceChildren(...turns.map((turn) => turnItem(turn.id, turn.question, turn.html)));
  }
  if (!location.hash) $("asked").scrollIntoView({ block: "start" });
}
