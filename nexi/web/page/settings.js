// The settings of the owner: model, search service, limits and theme. Keys are typed here and never shown again.
import { $, call, element } from "./core.js";

const FIELDS = [
  ["Model", [
    ["base_url", "Address of the model server", "url"],
    ["api_key", "API key", "password"],
    ["model", "Model", "text"],
  ]],
  ["Search", [
    ["searxng_url", "Address of your SearXNG", "url"],
    ["jina_key", "Jina key", "password"],
  ]],
  ["Limits of a question", [
    ["max_cost", "Cost in USD", "number"],
    ["max_tokens", "Tokens", "number"],
    ["time_target", "Seconds", "number"],
  ]],
];
const THEMES = { system: "Like the system", light: "Light", dark: "Dark" };

let saved = null; // what the server has

export async function fillSettings(refresh, checkRow) {
  saved = await call("/page/settings");
  const form = $("settings");
  form.hidden = false;
  form.replaceChildren(
    ...(saved.editable ? FIELDS.map(fieldset) : []),
    themeField(),
    ...(saved.editable ? [buttons()] : [element("p", { className: "state", textContent: "Model and search are set on the server: nexi config" })]),
    element("p", { id: "settings-message", className: "message", role: "status" }),
    element("ul", { id: "settings-checks", className: "rows" }),
  );
  form.onsubmit = (event) => { event.preventDefault(); work("Saving", async () => { await save(); await refresh(); say("Saved. The next question uses it."); }); };
  if (!saved.editable) return;
  $("settings-list").onclick = () => work("Asking the server for its models", listModels);
  $("settings-test").onclick = () => work("Testing: the model and every search service are asked once", () => test(checkRow));
}

const say = (text) => { $("settings-message").textContent = text; };

function fieldset([legend, fields]) {
  return element("fieldset", {}, element("legend", { textContent: legend }), ...fields.map(field));
}

function field([name, label, type]) {
  const input = element("input", { id: `settings-${name}`, name, type, autocomplete: "off" });
  if (type === "password") input.placeholder = saved.has[name] ? "stored; type to replace it" : "none";
  else input.value = saved.values[name] ?? "";
  if (type === "number") Object.assign(input, { min: "0", step: "any", placeholder: "no limit" });
  if (name === "model") input.setAttribute("list", "settings-models");
  const fixed = saved.environment.includes(name);
  input.disabled = fixed;
  return element("p", {},
    element("label", { htmlFor: input.id, textContent: fixed ? `${label} (set by the environment)` : label }), " ", input,
    ...(name === "model" ? [element("datalist", { id: "settings-models" }), " ", element("button", { type: "button", id: "settings-list", textContent: "List models" })] : []));
}

function buttons() {
  return element("p", {}, element("button", { type: "button", id: "settings-test", textContent: "Test" }), " ", element("button", { type: "submit", id: "settings-save", textContent: "Save" }));
}

function themeField() {
  const select = element("select", { id: "settings-theme" }, ...Object.entries(THEMES).map(([value, textContent]) => element("option", { value, textContent })));
  select.value = localStorage.getItem("nexi-theme") || "system";
  select.onchange = () => { localStorage.setItem("nexi-theme", select.value); applyTheme(); };
  return element("fieldset", {}, element("legend", { textContent: "Appearance" }), element("p", {}, element("label", { htmlFor: select.id, textContent: "Theme" }), " ", select));
}

export function applyTheme() {
  const theme = localStorage.getItem("nexi-theme");
  if (theme in THEMES && theme !== "system") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

// Only what differs from the server's values goes out; an emptied limit is none.
function changes() {
  const changed = {};
  for (const [name, , type] of FIELDS.flatMap(([, fields]) => fields)) {
    const input = $(`settings-${name}`);
    if (input.disabled) continue;
    if (type === "password") { if (input.value) changed[name] = input.value; continue; }
    const value = type === "number" ? (input.value === "" ? null : Number(input.value)) : input.value.trim();
    if (value !== (saved.values[name] ?? (type === "number" ? null : ""))) changed[name] = value;
  }
  return changed;
}

const post = (path) => call(path, { method: "POST", body: JSON.stringify(changes()) });

async function save() { saved = await post("/page/settings"); }

async function listModels() {
  const { models, problem } = await post("/page/settings/models");
  $("settings-models").replaceChildren(...models.map((value) => element("option", { value })));
  if (models.length && !models.includes($("settings-model").value)) $("settings-model").value = models[0];
  say(problem || (models.length ? `${models.length} models: choose one in the field` : "The server lists no models."));
}

async function test(checkRow) {
  const { checks } = await post("/page/settings/test");
  $("settings-checks").replaceChildren(...checks.map(checkRow));
  say(checks.every((check) => check.ok) ? "Everything works." : "Something does not work yet; you can save it anyway.");
}

async function work(doing, act) {
  const controls = [...$("settings").querySelectorAll("button")];
  controls.forEach((control) => { control.disabled = true; });
  say(`${doing} ...`);
  try { await act(); } catch (error) { say(error.message); }
  controls.forEach((control) => { control.disabled = false; });
}
