// The panels beside the run (history, knowledge, a check, a table, the account, set-up): opening one, its message, its search field, its rows, and asking before a deletion.
import { $ } from "./core.js";
import { tell } from "./texts.js";

const NAMES = ["runs", "knowledge", "check", "table", "account", "setup"];
const TYPING_MS = 200;

// One panel at a time takes the place of what is shown; "" gives that back.
export async function showPanel(name, fill) {
  for (const each of NAMES) {
    $(each).hidden = each !== name;
    $(`show-${each}`).setAttribute("aria-expanded", String(each === name));
  }
  document.body.classList.toggle("panel-open", Boolean(name));
  if (!name) return;
  $(`${name}-head`).focus();
  try { await fill(); } catch (error) { setPanelMessage(name, error.message); }
}

export function setPanelMessage(panel, text) { tell($(`${panel}-message`), text); }

// Resolves to whether the person agreed; the safe answer has the focus.
export function confirmAction(title, text, yes) {
  const dialog = $("confirm"), opener = document.activeElement;
  $("confirm-head").textContent = title;
  $("confirm-text").textContent = text;
  $("confirm-yes").textContent = yes;
  dialog.returnValue = "";
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => { if (opener?.isConnected) opener.focus(); resolve(dialog.returnValue === "yes"); }, { once: true });
    dialog.showModal();
    $("confirm-no").focus();
  });
}

// Typing searches after a short pause; an answer that comes too late is dropped.
export function bindSearchField(panel, find) {
  const field = $(`${panel}-filter`);
  let waiting = 0, turn = 0;
  const search = async () => {
    const mine = ++turn, isLatest = () => mine === turn;
    try { await find(field.value.trim(), isLatest); } catch (error) { if (isLatest()) setPanelMessage(panel, error.message); }
  };
  field.oninput = () => { clearTimeout(waiting); waiting = setTimeout(search, TYPING_MS); };
  return search();
}

// Takes a row out of its list and gives the focus to its neighbour.
export function removeItem(item) {
  const next = item.nextElementSibling || item.previousElementSibling, list = item.parentElement;
  item.remove();
  (next?.querySelector("a, button") || list.parentElement.querySelector("input"))?.focus();
}
