// Set-up: which parts are configured, and what works, on asking. No key is ever here.
import { $, call, element } from "./core.js";
import { setPanelMessage } from "./panel.js";
import { fillSettings } from "./settings.js";
import { say, tell } from "./texts.js";

const sign = (ok, words) => element("span", { className: ok ? "v-supported" : "v-not_found", textContent: `${ok ? "✓" : "✗"} ${words}` });

export async function fillSetup() {
  $("doctor-go").onclick = examine;
  fillSettingsAt($("setup-settings"), fillSetup).catch((error) => setPanelMessage("setup", error.message));
  const { parts } = await call("/page/setup");
  $("setup-list").replaceChildren(...parts.flatMap((part) => [
    element("dt", {}, tell(element("span"), part.name), " ", part.on ? "" : element("span", { className: "v-unset", textContent: say("setup.unset") })),
    element("dd", {}, tell(element("span", { dir: "auto" }), part.value), ...fixLines(part.fix)),
  ]));
}

// The one form of settings, where it is wanted.
export function fillSettingsAt(place, refresh = () => {}) {
  place.append($("settings"));
  return fillSettings(refresh, checkRow);
}

const command = (text) => element("code", { textContent: text, className: "fix" });
const fixLines = (fix) => (fix ? [element("br"), command(fix)] : []);

async function examine() {
  $("doctor-go").disabled = true;
  $("doctor-list").replaceChildren();
  setPanelMessage("setup", say("setup.checking"));
  try {
    const report = await call("/page/doctor", { method: "POST" });
    const wrong = report.checks.filter((check) => !check.ok);
    $("doctor-list").replaceChildren(...[...wrong, ...report.checks.filter((check) => check.ok)].map(checkRow));
    setPanelMessage("setup", !report.ok ? say("setup.broken") : wrong.length ? say("setup.works", { n: wrong.length }) : say("setup.all"));
  } catch (error) { setPanelMessage("setup", error.message); }
  $("doctor-go").disabled = false;
}

function checkRow(check) {
  const row = element("li", {}, element("p", {}, sign(check.ok, say(check.ok ? "setup.ok" : "setup.problem")), " ", tell(element("strong"), check.name), " ", tell(element("span"), check.message)));
  if (check.cause) row.append(tell(element("p", { className: "state" }), check.cause, (cause) => say("setup.why", { cause })));
  if (check.fix) row.append(element("p", { className: "state" }, `${say("setup.fix")} `, /^(nexi|pip|chmod) /.test(check.fix) ? command(check.fix) : tell(element("span"), check.fix)));
  return row;
}
