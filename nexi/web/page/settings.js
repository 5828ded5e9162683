// The settings of the owner: model, search service, limits and theme. Keys are typed here and never shown again.
import { $, call, element } from "./core.js";
import { chooseLanguage, chosenLanguage, say, tell } from "./texts.js";
import { chooseTheme, readTheme } from "./theme.js";

const FIELDS = [
  ["model", [["base_url", "url"], ["api_key", "password"], ["model", "text"]]],
  ["search", [["searxng_url", "url"], ["jina_key", "password"]]],
  ["limits", [["max_cost", "number"], ["max_tokens", "number"], ["time_target", "number"]]],
];
const THEMES = ["system", "light", "dark"];
const LANGUAGES = { en: "English", de: "Deutsch", es: "Español", fr: "Français", zh: "中文", ar: "العربية" }; // each by its own name

let saved = null; // what the server has

export async function fillSettings(refresh, checkRow) {
  saved = await call("/page/settings");
  const form = $("settings");
  form.hidden = false;
  form.replaceChildren(
    ...(saved.editable ? FIELDS.map(fieldset) : []),
    appearance(),
    ...(saved.editable ? [buttons()] : [element("p", { className: "state", textContent: say("settings.on_server") })]),
    element("p", { id: "settings-message", className: "message", role: "status" }),
    element("ul", { id: "settings-checks", className: "rows" }),
  );
  form.onsubmit = (event) => { event.preventDefault(); work("settings.saving", async () => { await save(); await refresh(); document.dispatchEvent(new CustomEvent("configured")); showMessage(say("settings.saved")); }); };
  if (!saved.editable) return;
  $("settings-list").onclick = () => work("settings.listing", listModels);
  $("settings-test").onclick = () => work("settings.testing", () => test(checkRow));
}

const showMessage = (text) => tell($("settings-message"), text);

function fieldset([legend, fields]) {
  return element("fieldset", {}, element("legend", { textContent: say(`settings.${legend}`) }), ...fields.map(field));
}

function field([name, type]) {
  const label = say(name === "model" ? "settings.model_name" : `settings.${name}`);
  const input = element("input", { id: `settings-${name}`, name, type, autocomplete: "off" });
  if (type === "password") input.placeholder = say(saved.has[name] ? "settings.stored" : "settings.none");
  else input.value = saved.values[name] ?? "";
  if (type === "number") Object.assign(input, { min: "0", step: "any", placeholder: say("settings.no_limit") });
  if (name === "model") input.setAttribute("list", "settings-models");
  const fixed = saved.environment.includes(name);
  input.disabled = fixed;
  return element("p", {},
    element("label", { htmlFor: input.id, textContent: fixed ? say("settings.fixed", { label }) : label }), " ", input,
    ...(name === "model" ? [element("datalist", { id: "settings-models" }), " ", element("button", { type: "button", id: "settings-list", textContent: say("settings.list") })] : []));
}

function buttons() {
  return element("p", {}, element("button", { type: "button", id: "settings-test", textContent: say("settings.test") }), " ", element("button", { type: "submit", id: "settings-save", className: "main", textContent: say("settings.save") }));
}

// What this browser keeps for itself; another language is another page.
function appearance() {
  const theme = picker("theme", THEMES.map((name) => [name, say(`settings.${name}`)]), readTheme(), chooseTheme);
  const language = picker("language", [["", say("settings.browser")], ...Object.entries(LANGUAGES)], chosenLanguage(), (code) => { chooseLanguage(code); location.reload(); });
  for (const option of language.querySelectorAll("option")) option.lang = option.value;
  return element("fieldset", {}, element("legend", { textContent: say("settings.appearance") }), theme, language);
}

function picker(name, options, value, choose) {
  const select = element("select", { id: `settings-${name}` }, ...options.map(([value, textContent]) => element("option", { value, textContent })));
  Object.assign(select, { value, onchange: () => choose(select.value) });
  return element("p", {}, element("label", { htmlFor: select.id, textContent: say(`settings.${name}`) }), " ", select);
}

// Only what differs from the server's values goes out; an emptied limit is none.
function changes() {
  const changed = {};
  for (const [name, type] of FIELDS.flatMap(([, fields]) => fields)) {
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
  showMessage(problem || (models.length ? say("settings.models", { n: models.length }) : say("settings.no_models")));
}

async function test(checkRow) {
  const { checks } = await post("/page/settings/test");
  $("settings-checks").replaceChildren(...checks.map(checkRow));
  showMessage(say(checks.every((check) => check.ok) ? "settings.works" : "settings.broken"));
}

async function work(doing, act) {
  const controls = [...$("settings").querySelectorAll("button")];
  controls.forEach((control) => { control.disabled = true; });
  showMessage(say(doing));
  try { await act(); } catch (error) { showMessage(error.message); }
  controls.forEach((control) => { control.disabled = false; });
}
