// Knowledge: the pages and files that are stored, to look through, to search and to forget.
import { $, call, element } from "./core.js";
import { bindSearchField, confirmAction, removeItem, setPanelMessage } from "./panel.js";
import { state } from "./state.js";
import { formatNumber, say } from "./texts.js";

const isWeb = (url) => /^https?:\/\//i.test(url);

export function fillKnowledge() {
  fillSharing().catch((error) => setPanelMessage("knowledge", error.message));
  return bindSearchField("knowledge", async (wanted, isLatest) => {
    const asked = encodeURIComponent(wanted);
    const [known, found] = await Promise.all([
      call(`/page/knowledge?limit=200&q=${asked}`), wanted ? call(`/page/knowledge/find?q=${asked}`) : { hits: [] },
    ]);
    if (!isLatest()) return;
    $("knowledge-about").textContent = summary(known);
    $("knowledge-list").replaceChildren(...known.sources.map(sourceRow));
    $("knowledge-found").hidden = !found.hits.length;
    $("knowledge-hits").replaceChildren(...found.hits.map(hitRow));
    const none = wanted && !known.sources.length && !found.hits.length ? say("knowledge.none") : "";
    setPanelMessage("knowledge", none || (known.more ? say("knowledge.more") : ""));
  });
}

function summary(known) {
  if (known.damage) return say("knowledge.damaged", { damage: known.damage });
  if (!known.on) return say("knowledge.off");
  if (!known.total) return say("knowledge.empty");
  return say("knowledge.size", { total: say("knowledge.total", { n: known.total }), passages: say("count.passages", { n: known.passages }), size: formatNumber(known.bytes / 1e6, 1) });
}

const titleOf = (title, url) => isWeb(url)
  ? element("a", { href: url, textContent: title || url, rel: "noreferrer noopener", target: "_blank", dir: "auto" })
  : element("span", { textContent: title || url, dir: "auto" });

function sourceRow(source) {
  const about = [source.owner && say("knowledge.shared_by", { name: source.owner }), source.domain, source.fetched, say("count.passages", { n: source.passages }), ...source.tags.map((tag) => `#${tag}`)].filter(Boolean).join(" · ");
  const forget = element("button", { type: "button", textContent: say("knowledge.forget"), className: "quiet" });
  forget.setAttribute("aria-label", say("knowledge.forget_one", { name: source.title || source.url }).slice(0, 120));
  const row = element("li", {}, element("div", {}, titleOf(source.title, source.url), element("p", { className: "state", textContent: about, dir: "auto" }),
    element("p", { className: "address", textContent: source.url })), element("div", { className: "tools" }, forget));
  forget.onclick = () => forgetSource(source, row).catch((error) => setPanelMessage("knowledge", error.message));
  return row;
}

function hitRow(hit) {
  return element("li", {}, element("div", {}, titleOf(hit.title, hit.url), element("p", { className: "excerpt", textContent: hit.snippet, dir: "auto" })));
}

async function forgetSource(source, row) {
  if (!await confirmAction(say("knowledge.ask"), say("knowledge.ask_text", { name: (source.title || source.url).slice(0, 300) }), say("knowledge.forget"))) return;
  await call("/page/knowledge/forget", { method: "POST", body: JSON.stringify({ urls: [source.url] }) });
  removeItem(row);
  setPanelMessage("knowledge", say("knowledge.forgotten"));
}

// Only a team has others to share with.
async function fillSharing() { if ((state.form ?? await call("/page/form")).team) (await import("/static/team/sharing.js")).fillSharing(); }
