import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { applyEvent, countOf, createWork, firstFinding, researchersOf } from "../../nexi/web/page/work.js";
import { fakePage } from "./page.js";

fakePage();

let work;
const tell = (kind, event = {}) => applyEvent(work, kind, event);
const start = (name, given, agent = "") => tell("tool_started", { name, call_id: "c", arguments: JSON.stringify(given), agent });

beforeEach(() => { work = createWork(); });

test("a query is listed when it is asked, and says what it found when that is known", () => {
  start("web_search", { queries: ["moon", "orbit"] });
  assert.equal(work.status, "Searching for “moon”, “orbit”");
  tell("search_finished", { query: "moon", hits: [{ url: "https://a.example/", title: "A", snippet: "About a.", published: "2030-01-02T03:04" }] });
  assert.deepEqual([...work.agents.get("").queries], [["moon", { hits: 1, isUnanswered: false }], ["orbit", {}]]);
  assert.equal(work.status, "Found 1 result for “moon”");
});

test("a search that no service answered is not one with 0 results", () => {
  tell("search_finished", { query: "moon", backend: "", hits: [], failures: [{ message: "no connection" }] });
  assert.deepEqual([...work.agents.get("").queries], [["moon", { hits: 0, isUnanswered: true }]]);
  assert.equal(work.status, "Could not search for “moon”");
  tell("search_finished", { query: "moon", backend: "duckduckgo", hits: [], failures: [] });
  assert.deepEqual([...work.agents.get("").queries], [["moon", { hits: 0, isUnanswered: false }]]);
  assert.equal(work.status, "Found 0 results for “moon”");
  tell("search_finished", { query: "moon", backend: "", hits: [], failures: [{ code: "empty", message: "it answered and has no result for this query" }] });
  assert.deepEqual([...work.agents.get("").queries], [["moon", { hits: 0, isUnanswered: false }]]);
});

test("a page is listed when it is opened, with its title, its date and its number once they are known", () => {
  tell("search_finished", { query: "moon", hits: [{ url: "https://a.example/", title: "A", snippet: "About a.", published: "2030-01-02T03:04" }] });
  start("web_get", { urls: ["https://a.example/", "https://b.example/"] });
  assert.equal(work.status, "Reading a.example, b.example");
  tell("page_fetched", { url: "https://a.example/", title: "All of A", imprint: {} });
  assert.equal(work.status, "Read a.example");
  tell("page_failed", { url: "https://b.example/", message: "it timed out" });
  tell("source_numbered", { source: { number: 1, url: "https://a.example/", title: "All of A" } });
  assert.deepEqual([...work.agents.get("").pages], [
    ["https://a.example/", { state: "read", ahead: false, title: "All of A", date: "2030-01-02", snippet: "About a.", n: 1 }],
    ["https://b.example/", { state: "failed", ahead: false, why: "it timed out" }],
  ]);
  assert.deepEqual([countOf(work, "pages"), countOf(work, "queries"), [...work.sources.keys()]], [1, 1, [1]]);
});

test("sources that the answer numbers anew have their new numbers in the list, at their pages and in the reports", () => {
  for (const [number, url] of [[1, "https://a.example/"], [2, "https://b.example/"]]) tell("source_numbered", { source: { number, url, title: url }, agent: "r1" });
  tell("researcher_reported", { researcher: "r1", report: "It orbits [2]. It is round [1]." });
  tell("sources_renumbered", { sources: [{ number: 1, url: "https://b.example/", title: "B" }, { number: 2, url: "https://a.example/", title: "A" }] });
  const agent = work.agents.get("r1");
  assert.deepEqual([[...work.sources].map(([n, one]) => [n, one.url]), [...agent.pages].map(([url, page]) => [url, page.n]), agent.report], [
    [[1, "https://b.example/"], [2, "https://a.example/"]], [["https://a.example/", 2], ["https://b.example/", 1]], "It orbits [1]. It is round [2].",
  ]);
});

test("statuses are sentences", () => {
  const said = (kind, event) => { tell(kind, event); return work.status; };
  assert.deepEqual([
    said("model_asked", { purpose: "answer" }), said("model_asked", { purpose: "correct" }), said("status_delta", { text: "planning" }),
    said("search_delayed", { backend: "searxng", seconds: 4.2 }), said("text_delta", { text: "x" }),
  ], ["Thinking about what to look for", "Correcting a sentence", "Planning the research", "Waiting 4 s for searxng", "Writing the answer"]);
  start("web_get", { urls: ["a", "b", "c", "d"].map((name) => `https://${name}.example/`) });
  assert.equal(work.status, "Reading a.example, b.example and 2 more");
});

test("a plan has every task, and each is waiting, at work, reported or failed", () => {
  tell("agenda_set", { tasks: ["one", "two", "three"], complexity: 2 });
  assert.deepEqual([work.waiting, work.rounds, work.status], [["one", "two", "three"], 3, "Planned 3 tasks"]);
  tell("researcher_started", { researcher: "1.1", round: 1, task: "one" });
  tell("researcher_started", { researcher: "1.2", round: 1, task: "two" });
  start("web_search", { queries: ["moon"] }, "1.2");
  assert.deepEqual([work.waiting, work.status], [["three"], "2 researchers at work"]);
  tell("researcher_reported", { researcher: "1.1", report: "# One\n\n- **The Moon** is far [3]. More." });
  assert.equal(work.status, "Searching for “moon”");
  tell("researcher_failed", { researcher: "1.2", message: "no model" });
  assert.deepEqual(researchersOf(work).map((one) => [one.id, one.task, one.state, one.finding, one.why]), [
    ["1.1", "one", "reported", "The Moon is far [3].", ""], ["1.2", "two", "failed", "", "no model"],
  ]);
  tell("status_delta", { text: "evaluating" });
  assert.equal(work.status, "Reading the report");
  tell("round_evaluated", { round: 1, decision: "delegate", tasks: ["four"] });
  assert.deepEqual([work.waiting, work.status], [["four"], "Going deeper with 1 new task"]);
});

test("progress never falls and never says that it is done before it is", () => {
  const seen = [];
  const note = () => seen.push(work.progress);
  tell("agenda_set", { tasks: ["1.1", "1.2"], complexity: 1 });
  for (const id of ["1.1", "1.2"]) { tell("researcher_started", { researcher: id, round: 1, task: id }); note(); }
  for (let n = 0; n < 30; n++) { tell("page_fetched", { url: `https://a.example/${n}`, agent: "1.1" }); note(); }
  for (const id of ["1.1", "1.2"]) { tell("researcher_reported", { researcher: id, report: "r" }); note(); }
  tell("round_evaluated", { round: 1, decision: "delegate", tasks: ["three", "four", "five"] }); note();
  assert.deepEqual([...seen].sort((a, b) => a - b), seen);
  assert.ok(seen.at(-1) > 30 && seen.at(-1) < 100);
  tell("run_finished");
  assert.equal(work.progress, 100);
});

test("what a model writes into its calls cannot break the list", () => {
  for (const given of ["nonsense", "[]", "null", '{"queries": "x"}', '{"urls": [1, null]}']) {
    tell("tool_started", { name: "web_search", call_id: "c", arguments: given });
    tell("tool_started", { name: "web_get", call_id: "c", arguments: given });
  }
  assert.deepEqual([work.agents.get("").queries.size, work.agents.get("").pages.size], [0, 0]);
});

test("of a very long run the newest pages are kept", () => {
  for (let n = 0; n < 1000; n++) tell("page_fetched", { url: `https://a.example/${n}` });
  const pages = [...work.agents.get("").pages.keys()];
  assert.deepEqual([pages.length, pages.at(-1), countOf(work, "pages")], [300, "https://a.example/999", 1000]);
});

test("a finding is the first sentence with a citation, without its Markdown", () => {
  assert.equal(firstFinding("## Head\n\nIntro.\n\n1. `A` is **b** [1][2]. Then c [3]."), "A is b [1][2].");
  assert.equal(firstFinding("Nothing is cited here."), "Nothing is cited here.");
  assert.equal(firstFinding(""), "");
});
