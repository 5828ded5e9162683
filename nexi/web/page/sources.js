// Sources in the rail: a card for each that the answer cites, and a list of those that were only read.
import { initialBadge, pageRow } from "./activity.js";
import { $, element, hostOf } from "./core.js";
import { state } from "./state.js";
import { language, say } from "./texts.js";

const MAX_LIVE = 40, MAX_READ = 100, SNIPPET_CHARS = 180;
const SIGNS = { supported: "✓", found: "○", contradicted: "✗", not_found: "?", not_confirmed: "·", unchecked: "·" };
const GOOD = ["supported", "found"], WORST = ["contradicted", "not_found", "unchecked", "not_confirmed"], MAX_VALUE_CHARS = 60;

export const isWeb = (url) => /^https?:\/\//i.test(url);
const canOpen = (link) => isWeb(link) || /^(?:obsidian|logseq|zotero):\/\//.test(link);
export const outside = (href, text) => element("a", { href, textContent: text, rel: "noreferrer noopener", target: "_blank", dir: "auto" });
const nameVerdict = (one) => say(`verdict.${one.evidence?.length === 0 ? "none" : one.verdict}`);
export const verdict = (one, text = nameVerdict(one)) => element("span", { className: `verdict v-${one.verdict}`, textContent: `${SIGNS[one.verdict] || "·"} ${text}` });
export const sourceOf = (number, run = state.run) => run?.sources.find((source) => source.n === number);

// A file has no host; the page says so in its own language.
export function nameFiles(run) {
  for (const source of run.sources || []) if (!isWeb(source.url)) source.host = say("source.file");
  return run;
}

// While a run goes on, the pages that have a number; afterwards those that the answer cites, with what they say.
export function drawSources(openStored) {
  const cards = state.run ? state.run.sources.map((source) => finishedCard(source, openStored, state.run)) : [...state.work.sources.values()].slice(-MAX_LIVE).map(liveCard);
  const held = document.activeElement.id; // a card that is drawn again keeps the focus
  $("source-list").replaceChildren(...cards);
  if (held.startsWith("source-")) $(held)?.focus({ preventScroll: true });
  const others = state.run ? pagesNotCited() : [];
  $("read-list").replaceChildren(...others.map(([url, page]) => pageRow(page, null, url)));
  $("read-sum").textContent = say("source.also", { n: others.length });
  $("also-read").hidden = !others.length;
  $("sources").hidden = !cards.length && !others.length;
}

let liveCount = 0;

// Cards are added when there are new ones; those that stand there stay.
export function drawLiveSources() {
  const list = $("source-list"), known = [...state.work.sources.values()];
  if (state.run || !known.length || list.childElementCount >= MAX_LIVE) return;
  if (!list.childElementCount) liveCount = 0;
  for (const source of known.slice(liveCount, MAX_LIVE)) list.append(liveCard(source));
  liveCount = Math.min(known.length, MAX_LIVE);
  $("sources").hidden = false;
}

const liveCard = (source) => card({ ...source, n: source.number, link: source.url, host: isWeb(source.url) ? hostOf(source.url) : "", published: source.date }, source.snippet || "");

export function finishedCard(source, openStored, run) {
  const said = run.claims.flatMap((claim) => claim.evidence.filter((one) => one.n === source.n)), quote = said.find((one) => one.quote)?.quote || "";
  const made = card(source, quote), foot = element("p", { className: "foot" });
  if (source.said && !GOOD.includes(worstOf(said))) foot.append(verdict(source, countVerdicts(said)), " ");
  else if (said.length) foot.append(element("span", { className: "site", textContent: say("source.cited", { n: said.length }) }), " ");
  if (run.kept) {
    const stored = element("button", { type: "button", textContent: say("source.stored"), className: "quiet", onclick: () => openStored(source, run) });
    stored.setAttribute("aria-label", say("source.stored_of", { n: source.n }));
    foot.append(stored);
  }
  made.lastChild.append(foot);
  return made;
}

const worstOf = (said) => WORST.find((verdict) => said.some((one) => one.verdict === verdict)) || "found";

// How many of the sentences that cite a source it supports, or has, and the worst that it says to one.
function countVerdicts(said) {
  const count = (verdict) => said.filter((one) => one.verdict === verdict).length, best = count("supported") ? "supported" : "found", worst = worstOf(said);
  const good = say("source.said", { k: count(best), n: said.length, verdict: say(`verdict.${best}`) });
  return worst === "found" ? good : [good, say("source.worst", { k: count(worst), verdict: say(`verdict.${worst}`) })].join(", ");
}

// The marks and citations of an answer in the language of the page; the server writes them in English.
export function translateMarks(root, claims = state.run?.claims) {
  if (language() === "en") return;
  for (const cite of root.querySelectorAll(".cite")) cite.setAttribute("aria-label", say("read.source", { n: Number(cite.dataset.n) }));
  for (const mark of root.querySelectorAll(".check")) {
    const verdict = mark.className.match(/v-(\w+)/)[1], claim = claims?.[mark.dataset.claim] || { verdict };
    const other = claim.evidence?.find((one) => one.verdict === "contradicted" && one.other)?.other, name = nameVerdict(claim);
    const standing = mark.dataset.standing;
    const text = standing ? say(`verdict.${standing}`) : verdict === "contradicted" && other ? say("verdict.other", { verdict: name, value: other.replace(/\s+/g, " ").slice(0, MAX_VALUE_CHARS) }) : name;
    mark.textContent = `${standing ? "!" : SIGNS[verdict]}\u00a0${text}`;
    if (mark.dataset.claim) mark.setAttribute("aria-label", say("verdict.show", { verdict: text })); else mark.title = text;
  }
}

function card(source, snippet) {
  const name = source.title || source.url, title = canOpen(source.link) ? outside(source.link, name) : element("span", { textContent: name, dir: "auto" });
  const about = [source.host, source.site, source.author, source.published, source.accessed ? say("source.read", { day: source.accessed }) : "", source.work < source.n ? say("source.same_work", { n: source.work }) : ""].filter(Boolean).join(" · ");
  const bare = snippet.replace(/^#+\s*/, ""), plain = bare !== snippet && bare.startsWith(name) ? bare.slice(name.length).trimStart() : bare, // the title stands above
     short = plain.length > SNIPPET_CHARS ? `${plain.slice(0, SNIPPET_CHARS)}…` : plain;
  return element("li", { id: `source-${source.n}`, tabIndex: -1 }, initialBadge(source.host || name), element("div", {},
    element("p", { className: "head" }, element("span", { className: "n", textContent: `[${source.n}] ` }), title),
    element("p", { className: "site", textContent: about, dir: "auto" }), ...(short ? [element("p", { className: "snippet", textContent: short, dir: "auto" })] : [])));
}

function pagesNotCited() {
  const cited = new Set(state.run.sources.map((source) => source.url)), read = new Map();
  for (const agent of state.work.agents.values()) for (const [url, page] of agent.pages) if (page.state === "read" && !cited.has(url)) read.set(url, page);
  return [...read].slice(0, MAX_READ);
}

// the card of a source, by its number or by the one that has the focus

export function showSource(number) {
  const item = $(`source-${number}`);
  item?.scrollIntoView({ block: "center" });
  item?.focus({ preventScroll: true });
}

export function stepSource(by) {
  const all = [...$("source-list").children], at = all.findIndex((one) => one.contains(document.activeElement));
  all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))]?.focus();
}
