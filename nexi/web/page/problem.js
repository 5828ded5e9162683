// A failure as a card: what happened, one cause, one fix, and the buttons that help with its code. Acting on them is for the page.
import { $, call, capitalise, element } from "./core.js";
import { say, tell } from "./texts.js";

const SEARCH = { fix: "card.fix_search", buttons: ["retry", "setup"] };
const MODEL = { fix: "card.fix_model", buttons: ["retry", "setup"] }, modelCard = (fix) => ({ ...MODEL, fix: `card.fix_${fix}` });
const BUSY = { fix: "card.fix_busy", buttons: ["retry"] };
const LIMIT = { fix: "card.fix_limit", buttons: ["retry", "setup"] };
const LOCAL = { buttons: ["retry"] };
const NONE = { buttons: [] };

// By the code of the error; one that is not here can be retried, and says what its sender says.
export const CARDS = {
  no_evidence: SEARCH, backend: SEARCH, network: SEARCH, refused: SEARCH, wrong_url: SEARCH, json_disabled: SEARCH, limiter: SEARCH, captcha: SEARCH, empty_or_blocked: SEARCH,
  connect: modelCard("connect"), dns: modelCard("connect"), tls: MODEL, auth: modelCard("auth"), not_found: modelCard("missing"), html_reply: modelCard("address"), bad_reply: MODEL,
  payment: modelCard("payment"), context_overflow: modelCard("window"),
  llm: BUSY, stream_closed: BUSY, timeout: BUSY, rate_limit: BUSY, server: BUSY, server_error: BUSY, empty_reply: BUSY,
  not_verified: { fix: "card.fix_unverified", buttons: ["retry"] }, budget_spent: LIMIT, quota_reached: NONE,
  config: { buttons: ["setup"] }, question: NONE, no_such_run: NONE, damaged_log: NONE, bad_request: NONE,
};
const OTHER = { buttons: ["retry"] };

export const cardOf = (code) => (Object.hasOwn(CARDS, code) ? CARDS[code] : OTHER);

const sentence = (text) => { const plain = (text || "").trim(); return capitalise(plain) + (/(^|[.!?…。？])$/.test(plain) ? "" : "."); };

// The fix that belongs to this cause is the sender's; one that is for a terminal has words of its own here.
function adviceOf(card, fix) {
  if (card !== SEARCH) return card.fix ? say(card.fix) : fix;
  if (/--(max|time)-|max_model_calls/.test(fix)) return say(LIMIT.fix);
  return fix && !/(^|\s)--\w|nexi doctor/.test(fix) ? fix : say(card.fix);
}
const adviceNode = (advice) => (/^nexi /.test(advice) ? element("code", { textContent: advice, className: "fix" }) : tell(element("span"), advice, sentence));

export function showProblem({ code = "", message, cause, fix, isLocal = false }) {
  const card = isLocal && cardOf(code) === SEARCH ? LOCAL : cardOf(code), advice = adviceOf(card, fix);
  const button = (name) => element("button", { type: "button", textContent: say(`card.${name}`), className: name === "retry" ? "main" : "", onclick: () => document.dispatchEvent(new CustomEvent(`wants-${name}`)) });
  const tools = element("p", { className: "tools" }, ...card.buttons.map(button));
  $("notes").append(element("section", { className: "problem" },
    tell(element("h2", { dir: "auto" }), message, (words) => sentence(words).replace(/[.。]$/, "")),
    ...(cause ? [tell(element("p", { dir: "auto" }), cause, sentence)] : []),
    ...(advice ? [element("p", { dir: "auto" }, element("b", { textContent: say("setup.fix") }), " ", adviceNode(advice))] : []),
    ...(card.buttons.length ? [tools] : [])));
  if (card === SEARCH) return call("/page/knowledge?limit=1").then(({ total }) => { if (total) tools.append(button("knowledge")); }, () => {}); // offered where something is stored
}
