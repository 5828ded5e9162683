// Shortcuts: / asks, Ctrl-K finds in the history, j and k go through the sources, ? lists them all.
import { $, element } from "./core.js";
import { stepSource } from "./sources.js";
import { say } from "./texts.js";

const KEYS = { ask: "/", send: "Enter", line: "Shift Enter", stop: "Esc", find: "Ctrl K", sources: "j k", places: "n p", help: "?" };

const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]");

export function watchKeys({ find }) {
  $("keys-list").append(...Object.entries(KEYS).flatMap(([does, keys]) => [
    element("dt", {}, ...keys.split(" ").map((key) => element("kbd", { textContent: key }))), element("dd", { textContent: say(`keys.${does}`) }),
  ]));
  const acts = {
    "/": () => $("question").focus(), "?": () => $("keys").showModal(), j: () => stepSource(1), k: () => stepSource(-1),
    n: () => $("evidence").open && $("evidence-after").click(), p: () => $("evidence").open && $("evidence-before").click(),
  };
  $("show-keys").addEventListener("click", acts["?"]);
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey || document.querySelector("dialog:modal")) return;
    const isFind = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k";
    if (!isFind && (event.ctrlKey || event.metaKey || isTyping(event.target) || !Object.hasOwn(acts, event.key))) return;
    event.preventDefault();
    if (isFind) find(); else acts[event.key]();
  });
}
