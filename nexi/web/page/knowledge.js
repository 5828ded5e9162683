// Knowledge: the pages and files that are stored, to look through, to search and to forget.
import { $, call, element, plural } from "./core.js";
import { bindSearchField, confirmAction, removeItem, setPanelMessage } from "./panel.js";

const isWeb = (url) => /^https?:\/\//i.test(url);

export function fillKnowledge() {
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
    const none = wanted && !known.sources.length && !found.hits.length ? "Nothing of that is known." : "";
    setPanelMessage("knowledge", none || (known.more ? "The first 200 are shown: look for words to see others." : ""));
  });
}

function summary(known) {
  if (known.damage) return `The store is damaged: ${known.damage}. nexi doctor --repair saves what can be read.`;
  if (!known.on) return "Keeping is off: nothing that is read is stored. nexi config set knowledge true turns it on.";
  if (!known.total) return "Nothing is known yet: pages that are read and files that are dropped on the page are kept here.";
  return `${plural(known.total, "page or file", "pages and files")} in ${plural(known.passages, "passage")}, ${(known.bytes / 1e6).toFixed(1)} MB`;
}

const titleOf = (title, url) => isWeb(url)
  ? element("a", { href: url, textContent: title || url, rel: "noreferrer noopener", target: "_blank", dir: "auto" })
  : element("span", { textContent: title || url, dir: "auto" });

function sourceRow(source) {
  const about = [source.domain, source.fetched, plural(source.passages, "passage"), ...source.tags.map((tag) => `#${tag}`)].filter(Boolean).join(" · ");
  const forget = element("button", { type: "button", textContent: "Forget", className: "quiet" });
  forget.setAttribute("aria-label", `Forget: ${source.title || source.url}`.slice(0, 120));
  const row = element("li", {}, element("div", {}, titleOf(source.title, source.url), element("p", { className: "state", textContent: about, dir: "auto" }),
    element("p", { className: "address", textContent: source.url })), element("div", { className: "tools" }, forget));
  forget.onclick = () => forgetSource(source, row).catch((error) => setPanelMessage("knowledge", error.message));
  return row;
}

function hitRow(hit) {
  return element("li", {}, element("div", {}, titleOf(hit.title, hit.url), element("p", { className: "excerpt", textContent: hit.snippet, dir: "auto" })));
}

async function forgetSource(source, row) {
  if (!await confirmAction("Forget this source?", `“${(source.title || source.url).slice(0, 300)}” is no longer found by later questions. Answers that cite it keep their evidence.`, "Forget")) return;
  await call("/page/knowledge/forget", { method: "POST", body: JSON.stringify({ urls: [source.url] }) });
  removeItem(row);
  setPanelMessage("knowledge", "Forgotten.");
}
