// One's account on a team server: schedules, access tokens, and which administrators had access.
import { $, call, copyText, element } from "../core.js";
import { confirmAction, removeItem, setPanelMessage } from "../panel.js";
import { formatDate, say } from "../texts.js";
import { describeAccess, markSeen, readAccess } from "./access.js";
import { loadTexts } from "./texts.js";

const INTERVALS = ["hour", "day", "week"];

export async function fillAccount() {
  await loadTexts();
  const message = element("p", { id: "account-message", className: "message", role: "status" }), who = element("p", { id: "account-who", dir: "auto" });
  $("account").replaceChildren($("account-head"), who, message, schedulePart(), tokenPart(), accessPart());
  const [account] = await Promise.all([call("/account"), listSchedules(), listTokens(), listAccess()]);
  who.textContent = say("account.who", { name: account.name });
}

const part = (name, ...children) => element("section", {}, element("h2", { textContent: say(`account.${name}`) }), element("p", { className: "state", textContent: say(`account.${name}_about`) }), ...children);
const field = (words, control) => element("label", { className: "find" }, element("span", { textContent: words }), control);
const fillRows = (id, rows, none) => $(id).replaceChildren(...(rows.length ? rows : [element("li", { className: "state", textContent: none })]));

// A form whose errors stand in the message of the panel, where a screen reader says them.
function formOf(id, submit, button, ...fields) {
  const form = element("form", { id, autocomplete: "off" }, ...fields, element("p", { className: "tools" }, element("button", { type: "submit", textContent: button })));
  form.onsubmit = (event) => { event.preventDefault(); attempt(() => submit(form)); };
  return form;
}

async function attempt(act) { try { await act(); } catch (error) { setPanelMessage("account", error.message); } }

function rowOf(head, about, button, label, act) {
  const control = element("button", { type: "button", className: "quiet", textContent: button });
  control.setAttribute("aria-label", label.slice(0, 120));
  const row = element("li", {}, element("div", {}, head, element("p", { className: "state" }, ...about)), element("div", { className: "tools" }, control));
  control.onclick = () => attempt(() => act(row));
  return row;
}

function schedulePart() {
  const every = element("select", { id: "schedule-every" }, ...INTERVALS.map((value) => element("option", { value, textContent: say(`account.${value}`), defaultSelected: value === "day" })));
  return part("schedules",
    formOf("schedule-new", addSchedule, say("account.schedule_add"),
      field(say("account.question"), element("input", { id: "schedule-question", required: true, dir: "auto" })),
      field(say("account.every"), every), field(say("account.first"), element("input", { id: "schedule-first", type: "datetime-local" }))),
    element("ul", { id: "schedule-list", className: "rows" }));
}

async function addSchedule(form) {
  const first = $("schedule-first").value; // in the reader's own zone, which the server does not know
  await call("/v1/schedules", { method: "POST", body: JSON.stringify({ question: $("schedule-question").value, every: $("schedule-every").value, ...(first && { first: new Date(first).toISOString() }) }) });
  form.reset();
  await listSchedules();
  setPanelMessage("account", say("account.schedule_added"));
}

async function listSchedules() {
  const { schedules } = await call("/v1/schedules");
  fillRows("schedule-list", schedules.map(scheduleRow), say("account.schedule_none"));
}

function scheduleRow(schedule) {
  const about = [say(`account.${schedule.every}`), say("account.next", { time: formatDate(schedule.next) })].join(" · ");
  const last = schedule.last_run ? element("a", { href: `/runs/${schedule.last_run}`, textContent: say("account.last") }) : say("account.not_asked");
  return rowOf(element("span", { textContent: schedule.question, dir: "auto" }), [`${about} · `, last], say("account.remove"), say("account.remove_one", { name: schedule.question }), async (row) => {
    if (!await confirmAction(say("account.remove_ask"), say("account.remove_text", { name: schedule.question.slice(0, 300) }), say("account.remove"))) return;
    await call(`/v1/schedules/${schedule.id}`, { method: "DELETE" });
    removeItem(row);
    setPanelMessage("account", say("account.removed"));
  });
}

function tokenPart() {
  return part("tokens",
    formOf("token-new", addToken, say("account.token_add"),
      field(say("account.token_name"), element("input", { id: "token-name", required: true, dir: "auto" })),
      field(say("account.token_days"), element("input", { id: "token-days", type: "number", min: "1" })),
      element("p", {}, element("label", {}, element("input", { id: "token-read-only", type: "checkbox" }), ` ${say("account.token_read")}`))),
    element("div", { id: "token-once" }), element("ul", { id: "token-list", className: "rows" }));
}

async function addToken(form) {
  const days = $("token-days").value;
  const { token } = await call("/account/tokens", { method: "POST", body: JSON.stringify({ name: $("token-name").value, read_only: $("token-read-only").checked, ...(days && { days: Number(days) }) }) });
  form.reset();
  await listTokens();
  showOnce(token);
}

// The secret is only in this field, selected, so that it can be copied at once.
function showOnce(token) {
  const secret = element("input", { id: "token-secret", readOnly: true, value: token, dir: "ltr" }), copy = element("button", { type: "button", textContent: say("account.copy") });
  copy.onclick = () => attempt(async () => { await copyText(token); setPanelMessage("account", say("app.copied")); });
  $("token-once").replaceChildren(field(say("account.token_once"), secret), element("p", { className: "tools" }, copy));
  setPanelMessage("account", "");
  secret.focus();
  secret.select();
}

async function listTokens() {
  const { tokens } = await call("/account/tokens");
  fillRows("token-list", tokens.map(tokenRow), say("account.token_none"));
}

function tokenRow(token) {
  const about = [
    say(token.scopes.includes("ask") ? "account.full" : "account.read_only"),
    token.expires ? say("account.expires", { time: formatDate(token.expires) }) : say("account.endless"),
    token.last_used ? say("account.used", { time: formatDate(token.last_used) }) : say("account.unused"),
  ].join(" · ");
  return rowOf(element("span", { textContent: token.name, dir: "auto" }), [about], say("account.revoke"), say("account.revoke_one", { name: token.name }), async (row) => {
    if (!await confirmAction(say("account.revoke_ask"), say("account.revoke_text", { name: token.name }), say("account.revoke"))) return;
    await call(`/account/tokens/${token.id}`, { method: "DELETE" });
    removeItem(row);
    setPanelMessage("account", say("account.revoked"));
  });
}

const accessPart = () => part("access", element("ul", { id: "access-list", className: "rows" }));

async function listAccess() {
  const access = await readAccess();
  fillRows("access-list", access.map((one) => element("li", {}, element("div", {}, element("span", { textContent: describeAccess(one), dir: "auto" }), element("p", { className: "state", textContent: formatDate(one.at) })))), say("account.access_none"));
  markSeen(access);
  $("access-notice")?.remove();
}
