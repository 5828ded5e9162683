// A question that may mean several things, asked back before it is researched: one button for each reading, and one for all.
import { hideEmptyActivity } from "./activity.js";
import { $, element, setStatus } from "./core.js";
import { say } from "./texts.js";
import { stopFollowing } from "./watch.js";

export function showReadings(open, question, research) {
  stopFollowing();
  hideEmptyActivity();
  setStatus("");
  const button = (text, meant) => element("li", {}, element("button", { type: "button", textContent: text, dir: "auto", onclick: () => research(meant) }));
  $("readings-head").textContent = open.kind ? say("readings.kind", { kind: open.kind }) : say("readings.head");
  const own = open.readings.map((reading) => button(reading.name, reading.question));
  $("readings-list").replaceChildren(...own, button(say(open.kind ? "readings.as_is" : "readings.all"), question));
  $("readings").hidden = false;
  $("question").value = open.kind ? question : "";
  $(open.kind ? "question" : "readings-head").focus();
}
