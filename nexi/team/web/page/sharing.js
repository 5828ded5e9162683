// A knowledge base and others: who may search one's own, and whose enter one's answers.
import { $, call, element } from "../core.js";
import { setPanelMessage } from "../panel.js";
import { say } from "../texts.js";
import { loadTexts } from "./texts.js";

export async function fillSharing() {
  const box = $("knowledge-sharing");
  const [audience, others] = await Promise.all([call("/v1/knowledge/shares"), call("/v1/shared-knowledge"), loadTexts()]);
  box.hidden = false;
  const team = element("input", { id: "knowledge-team", type: "checkbox" }), people = element("input", { id: "knowledge-people", maxLength: 2000, dir: "auto" });
  const shared = element("span", { id: "knowledge-shared", className: "message", role: "status" });
  const form = element("form", { id: "knowledge-share", autocomplete: "off" },
    element("p", {}, element("label", {}, team, ` ${say("knowledge.whole_team")}`)),
    element("label", { className: "find" }, element("span", { textContent: say("knowledge.names") }), people),
    element("p", { className: "tools" }, element("button", { type: "submit", textContent: say("app.share") }), shared));
  const show = (now) => {
    team.checked = now.team;
    people.value = now.people.join(", ");
    shared.textContent = now.team ? say("knowledge.team") : now.people.length ? say("knowledge.people", { names: people.value }) : say("knowledge.nobody");
  };
  const share = async () => show(await call("/v1/knowledge/shares", { method: "PUT", body: JSON.stringify({ team: team.checked, people: people.value.split(/[,，;]/).map((name) => name.trim()).filter(Boolean) }) }));
  form.onsubmit = (event) => { event.preventDefault(); share().catch((error) => { shared.textContent = error.message; }); };
  show(audience);
  const offers = element("ul", { id: "knowledge-offers" });
  const showOffers = (now) => offers.replaceChildren(...now.offers.map((offer) => {
    const answerButton = (accepted, word) => {
      const button = element("button", { type: "button", className: "quiet", textContent: word });
      const answer = async () => showOffers(await call(`/v1/shared-knowledge/${offer.owner}`, { method: "PUT", body: JSON.stringify({ accepted }) }));
      button.onclick = () => answer().catch((error) => setPanelMessage("knowledge", error.message));
      return button;
    };
    return element("li", {}, say(`knowledge.${offer.state}`, { name: offer.name }), " ",
      ...(offer.state === "accepted" ? [] : [answerButton(true, say("knowledge.accept"))]), ...(offer.state === "muted" ? [] : [answerButton(false, say("knowledge.mute"))]));
  }));
  showOffers(others);
  box.replaceChildren(offers,
    element("details", {}, element("summary", { textContent: say("knowledge.share") }), element("p", { textContent: say("knowledge.share_what") }), form));
}
