// How a run stands, for who looks elsewhere: in the title of the tab, and in a notification where the person wants one.
import { $ } from "./core.js";
import { state } from "./state.js";
import { say } from "./texts.js";

const LONG_S = 20;
const SIGNS = { waiting: "◐", done: "✓", failed: "✗" };

const questionTitle = () => `${$("asked").textContent.slice(0, 60)} - nexi`;
const hasLasted = () => (performance.now() - state.started) / 1000 >= LONG_S;

// `how` is waiting, done, failed or "" for a run that goes on.
export function showInTitle(how = "") {
  const isShown = how === "waiting" || (how && document.hidden);
  document.title = [isShown ? SIGNS[how] : "", how === "waiting" ? `${say("notify.waiting")} -` : "", questionTitle()].filter(Boolean).join(" ");
  if (how && document.hidden && (how === "waiting" || hasLasted())) notify(say(how === "waiting" ? "notify.plan" : `notify.${how}`));
}

function notify(text) {
  if (!canNotify("granted")) return;
  const told = new Notification(text, { body: $("asked").textContent.slice(0, 200), tag: `nexi-${state.id}`, icon: "/static/icon.svg" });
  told.onclick = () => { window.focus(); told.close(); };
}

const canNotify = (permission) => "Notification" in window && isSecureContext && Notification.permission === permission;

// The button that asks for it is there while a deep run goes on and the browser has not been asked.
export function offerNotification(isRunning) { $("notify").hidden = !(isRunning && state.work.isDeep && canNotify("default")); }

export function watchTitle() {
  $("notify").addEventListener("click", () => Notification.requestPermission().finally(() => { $("notify").hidden = true; }));
  document.addEventListener("visibilitychange", () => { if (!document.hidden && state.run) showInTitle(); });
}
