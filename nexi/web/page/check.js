// Checking a text: what a person pastes, sentence by sentence, with the passages that were found. Its words come with its first opening.
import { $, call, element } from "./core.js";
import { setPanelMessage } from "./panel.js";
import { isWeb, outside, translateMarks, verdict } from "./sources.js";
import { formatNumber, say, tell } from "./texts.js";

let words = null;

const put = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const percent = (share) => `${formatNumber(100 * share, 0)} %`;

export async function fillCheck() {
  if (words) return;
  words = await call("/page/check");
  $("check-head").textContent = words.head;
  const field = (tag, id, label, more = {}) => element("label", {}, element("span", { textContent: label }), element(tag, { id, dir: "auto", ...more }));
  const box = (id, label) => element("label", { className: "check" }, element("input", { id, type: "checkbox" }), " ", element("span", { textContent: label }));
  const go = element("button", { id: "check-go", className: "main", textContent: words.go });
  const form = element("form", { id: "check-form", autocomplete: "off" }, element("p", { className: "message", textContent: words.about }),
    field("textarea", "check-text", words.text, { rows: 10, maxLength: 1000000, required: true }),
    field("textarea", "check-pages", words.pages, { rows: 2, placeholder: "https://example.org/" }),
    element("p", { className: "tools" }, box("check-web", words.web), " ", box("check-audit", words.audit), " ", go));
  const message = element("p", { id: "check-message", className: "message" });
  message.setAttribute("role", "status");
  $("check").append(form, message, element("div", { id: "check-result" }));
  form.onsubmit = (event) => { event.preventDefault(); check(go); };
  $("check-audit").onchange = () => { $("check-web").disabled = $("check-pages").disabled = $("check-audit").checked; };
  $("check-result").onclick = (event) => followMark(event.target.closest("[data-claim], [data-n]"));
}

async function check(go) {
  const audit = $("check-audit").checked, against = audit ? [] : $("check-pages").value.split(/\s+/).filter(Boolean);
  const wrong = against.find((page) => !isWeb(page));
  if (wrong) return setPanelMessage("check", put(words.no_address, { page: wrong.slice(0, 200) }));
  go.disabled = true;
  $("check-result").replaceChildren();
  setPanelMessage("check", words.working);
  try {
    const found = await call("/page/check", { method: "POST", body: JSON.stringify({ text: $("check-text").value, against, audit, web: !audit && $("check-web").checked }) });
    setPanelMessage("check", "");
    showResult(found);
  } catch (error) { tell($("check-message"), error.message); }
  go.disabled = false;
}

function showResult(found) {
  const text = element("article", { id: "check-shown", dir: "auto", innerHTML: found.html }); // made safe by the server
  translateMarks(text, Object.fromEntries(found.claims.map((claim) => [claim.index, claim])));
  $("check-result").replaceChildren(figures(found), ...notes(found), text,
    element("h2", { textContent: words.sentences }), element("ol", { id: "check-claims", className: "rows" }, ...found.claims.map(claimRow)),
    element("h2", { textContent: words.sources }), element("ol", { id: "check-sources", className: "rows" }, ...found.sources.map(sourceRow)));
}

function figures({ counts, precision, recall, is_bound: isBound }) {
  const least = isBound ? `${words.least} ` : "";
  const shares = [[words.precision, precision], [words.recall, recall]].filter(([, share]) => share !== null).map(([name, share]) => element("strong", { textContent: `${name} ${least}${percent(share)} ` }));
  const kinds = Object.entries(counts).filter(([, n]) => n).map(([kind, n]) => verdict({ verdict: kind }, `${n} ${say(`verdict.${kind}`)}`));
  return element("p", { id: "check-figures" }, ...shares, ...kinds.flatMap((kind) => [kind, " "]));
}

const notes = ({ judge, gap }) => [judge ? put(words.judged, { name: judge }) : words.rules, gap].filter(Boolean).map((text) => tell(element("p", { className: "message" }), text));

function claimRow(claim) {
  const row = element("li", { id: `check-claim-${claim.index}`, tabIndex: -1 }, element("div", {}, element("p", {}, verdict(claim), " ", element("span", { textContent: claim.text, dir: "auto" }))));
  for (const one of claim.evidence) {
    const other = one.other ? ` · ${say("read.other", { value: one.other })}` : "";
    row.firstChild.append(element("p", { className: "state" }, `[${one.n}] `, verdict(one), " · ", tell(element("span"), one.reason), other));
    if (one.quote) row.firstChild.append(element("div", { className: "passage", textContent: one.quote, dir: "auto" }));
  }
  if (!claim.evidence.length && claim.reason) row.firstChild.append(tell(element("p", { className: "state" }), claim.reason));
  return row;
}

function sourceRow(source) {
  const title = source.link ? outside(source.link, source.title) : element("span", { textContent: source.title, dir: "auto" });
  const state = ["dead", "refused", "missing", "unread"].includes(source.state) ? `${words.unread}: ${source.reason}` : "";
  return element("li", { id: `check-source-${source.n}`, tabIndex: -1 }, element("div", {}, `[${source.n}] `, title, element("p", { className: "state", textContent: state })));
}

function followMark(mark) {
  if (!mark) return;
  const row = mark.dataset.claim ? $(`check-claim-${mark.dataset.claim}`) : $(`check-source-${mark.dataset.n}`);
  row?.scrollIntoView({ block: "center" });
  row?.focus({ preventScroll: true });
}
