// The first visit, before a model is set up and anything was asked: what works already, and the settings in place.
import { $ } from "./core.js";
import { language, say } from "./texts.js";

const FIELDS = { model: "base_url", search: "searxng_url" };

export function showWelcome({ search, editable }) {
  $("welcome").hidden = false;
  const services = search.length ? say("welcome.search", { services: new Intl.ListFormat(language()).format(search) }) : say("welcome.no_search");
  $("welcome-search").textContent = search.includes("SearXNG") ? services : `${services} ${say("welcome.more")}`;
  for (const [name, field] of Object.entries(FIELDS)) {
    $(`welcome-${name}-set`).hidden = !editable;
    $(`welcome-${name}-set`).onclick = () => openSettings(field);
  }
}

async function openSettings(field) {
  const { fillSettingsAt } = await import("./setup.js");
  await fillSettingsAt($("welcome-settings"));
  $(`settings-${field}`).focus();
}
