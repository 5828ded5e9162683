// What is typed is kept: a draft until it is asked, and a question that was sent during a run until the run has ended.
import { $ } from "./core.js";
import { state } from "./state.js";

const DRAFT = "nexi-draft", NEXT = "nexi-next";

const read = (store, key) => { try { return store.getItem(key) || ""; } catch { return ""; } };
const write = (store, key, text) => { try { if (text) store.setItem(key, text); else store.removeItem(key); } catch { /* a browser that keeps nothing */ } };

export const keepDraft = () => write(localStorage, DRAFT, $("question").value);
export const clearDraft = () => write(localStorage, DRAFT, "");
export function restoreDraft() { if (!$("question").value) $("question").value = read(localStorage, DRAFT); }

// One question may wait for the end of the run that is shown; it is asked then, as its follow-up.
export function queueQuestion(text) {
  write(sessionStorage, NEXT, text ? `${state.id} ${text}` : "");
  showQueued();
}

export function queuedQuestion() {
  const kept = read(sessionStorage, NEXT);
  return kept.startsWith(`${state.id} `) ? kept.slice(state.id.length + 1) : "";
}

export function showQueued() {
  const text = queuedQuestion();
  $("queued-text").textContent = text;
  $("queued").hidden = !text;
}
