// The start page of somebody who has asked before: the latest conversations, and questions about files that are indexed.
import { $, call, element } from "./core.js";
import { foldRepeats, groupRuns } from "./runs.js";
import { isWeb } from "./sources.js";
import { listSpaces } from "./spaces.js";
import { state } from "./state.js";
import { formatDate, say } from "./texts.js";

const MAX_THREADS = 5, MAX_RUNS = 40, MAX_FILES = 3, MAX_SOURCES = 30;

export async function showRecent() {
  const { space } = state, sourcesPath = space ? `/v1/spaces/${encodeURIComponent(space)}/sources` : `/page/knowledge?limit=${MAX_SOURCES}`;
  listSpaces().catch(() => {}); // a guest has none
  const [{ items }, { sources }] = await Promise.all([call(`/page/history?limit=${MAX_RUNS}&space=${encodeURIComponent(space)}`), call(sourcesPath).catch(() => ({ sources: [] }))]);
  if (space !== state.space) return;
  const threads = foldRepeats(groupRuns(items)).slice(0, MAX_THREADS).map(([newest]) => newest), files = sources.filter((source) => !isWeb(source.url) && source.title).slice(0, MAX_FILES);
  $("recent-list").replaceChildren(...threads.map(threadRow));
  $("recent").hidden = !threads.length;
  if (files.length) $("examples").replaceChildren(...files.map(fileExample));
}

// It opens at the newest turn, above which the others stand.
function threadRow(runs) {
  const first = runs[0], last = runs.at(-1), about = [formatDate(last.created), runs.length > 1 ? say("home.turns", { n: runs.length }) : ""];
  return element("li", {}, element("a", { href: `/runs/${last.id}`, textContent: first.title || first.question || first.id, dir: "auto" }), element("span", { className: "site", textContent: about.filter(Boolean).join(" · ") }));
}

function fileExample({ title }) {
  const made = element("button", { type: "button", textContent: say("home.file", { title }), dir: "auto" });
  made.dataset.focus = "local";
  return element("li", {}, made);
}
