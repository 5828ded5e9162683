// A space on the page: the line that names it, its instructions, and its place among the others on the start page.
import { $, call, element } from "./core.js";
import { setSpace, state } from "./state.js";
import { say, tell } from "./texts.js";

const pathOf = (address) => `/v1/spaces/${encodeURIComponent(address)}`;

// What a question is asked with if it says nothing: as its space has it, else the server; what was chosen meanwhile stays.
export function showDefaults(chosen = "") {
  const { form, defaults } = state;
  if (!form) return;
  $("effort").value = chosen || defaults.effort || form.effort;
  $("model").options[0].textContent = defaults.model || (form.has_model ? form.model : say("ask.built_in"));
  $("effort").dispatchEvent(new Event("change"));
}

// Enters the space of an address; one that is not there is offered to be made, or left alone where a run remembers it.
export async function enterSpace(address) {
  if (state.space === address) return;
  setSpace(address);
  $("space").hidden = false;
  $("spaces").hidden = true;
  showParts(say("space.in", { name: address }));
  try {
    const space = await call(pathOf(address));
    if (state.space !== address) return;
    setSpace(address, space);
    showDefaults();
    $("instructions").value = space.instructions;
    showParts(say("space.in", { name: address }), { isOwn: !space.owner });
  } catch (error) {
    if (state.space !== address) return;
    if (state.id) return leaveSpace();
    const isMissing = error.status === 404;
    setSpace("");
    showParts(isMissing ? say("space.none", { name: address }) : error.message, { canAdd: isMissing && !address.includes("@") });
    $("space-add").onclick = () => addSpace(address).then(() => enterSpace(address)).catch((problem) => showParts(problem.message));
  }
}

export function leaveSpace() {
  $("space").hidden = true;
  if (!state.space) return;
  setSpace("");
  showDefaults();
}

function showParts(words, { isOwn = false, canAdd = false } = {}) {
  $("space-name").textContent = words;
  $("space-settings").hidden = !isOwn;
  $("space-add").hidden = !canAdd;
  $("space-status").textContent = "";
}

const addSpace = (name) => call("/v1/spaces", { method: "POST", body: JSON.stringify({ name }) });

export async function saveInstructions() {
  try {
    await call(pathOf(state.space), { method: "PATCH", body: JSON.stringify({ instructions: $("instructions").value }) });
    $("space-status").textContent = say("space.saved");
  } catch (error) { tell($("space-status"), error.message); }
}

// The spaces by name, and a field for a new one; nothing where the reader can have none.
export async function listSpaces() {
  const { spaces } = await call("/v1/spaces");
  $("space-list").replaceChildren(...spaces.map(({ address }) => element("li", {}, element("a", { href: `/spaces/${encodeURIComponent(address)}`, textContent: address, dir: "auto" }))));
  $("spaces").hidden = !$("space").hidden;
}

export async function makeSpace(event) {
  event.preventDefault();
  const name = $("space-new-name").value.trim();
  try {
    await addSpace(name);
    location.assign(`/spaces/${encodeURIComponent(name)}`);
  } catch (error) { tell($("space-problem"), error.message); }
}
