import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { fakePage, fakeTimers, jsonReply, wordsOf } from "./page.js";

const byId = fakePage(), timers = fakeTimers();
const { follow, reconnectDelay } = await import("../../nexi/web/page/watch.js");
const { loadTimeline, resetRun, state } = await import("../../nexi/web/page/state.js");

const frame = (id, kind, data = {}) => `id: ${id}\nevent: ${kind}\ndata: ${JSON.stringify(data)}\n\n`;
const stream = (text) => new Response(text, { headers: { "content-type": "text/event-stream" } });

let resumedFrom = [];

// A server whose connections to the events each send one text and then break; the run has failed after the last.
function serve(...bodies) {
  resumedFrom = [];
  globalThis.fetch = async (path, options) => {
    if (!path.endsWith("/events")) return jsonReply({ state: bodies.length ? "running" : "failed", error: { message: "gone" } });
    resumedFrom.push(options.headers["last-event-id"]);
    return stream(bodies.shift() ?? "");
  };
}

async function followToTheEnd() {
  let isOver = false;
  const followed = follow("abc123").finally(() => { isOver = true; });
  for (let i = 0; i < 1000 && !isOver; i++) await timers.pass(10);
  assert.ok(isOver);
  await followed;
}

beforeEach(() => { resetRun(); for (const id of ["notes", "spent", "work"]) byId(id).replaceChildren(); });

test("waiting before a new connection grows up to three seconds", () => {
  assert.deepEqual([0, 1, 2, 10, 1000].map(reconnectDelay), [300, 450, 675, 3000, 3000]);
});

test("events become what the page shows", async () => {
  serve([
    frame(1, "run_started", { query: "how far?", effort: "s", mode: "search", settings: { continues: "ffffff", asked: { time_target: 9 } } }),
    frame(2, "model_replied", { call: 1, seconds: 1, usage: { input_tokens: 5, output_tokens: 2, cost: 0.1 } }),
    frame(3, "search_finished", { query: "moon", backend: "", hits: [], failures: [{ code: "dns", message: "no connection" }], seconds: 1 }),
    frame(4, "page_fetched", { url: "https://a.example/b", seconds: 1 }),
    frame(5, "researcher_started", { researcher: "1.1", task: "look" }),
    frame(6, "researcher_failed", { researcher: "1.1", message: "no model" }),
    frame(7, "warned", { message: "slow" }), frame(8, "warned", { message: "of a researcher", agent: "1.1" }), frame(9, "kind_of_tomorrow"),
  ].join(""));
  await followToTheEnd();
  assert.deepEqual([byId("asked").textContent, state.asked, state.before], ["how far?", { effort: "s", mode: "search", time_target: 9 }, "ffffff"]);
  assert.deepEqual(state.spent, { tokens: 7, cost: 0.1, calls: 1, searches: 1, pages: 1 });
  assert.deepEqual(state.bars.map((bar) => [bar.lane, bar.label, bar.failed]), [["model", "call 1", false], ["search", "moon", true], ["page", "a.example", false]]);
  const researcher = state.work.agents.get("1.1");
  assert.deepEqual([researcher.task, researcher.state, researcher.why], ["look", "failed", "no model"]);
  assert.deepEqual(byId("notes").children.flatMap(wordsOf), ["Slow", "Gone", "Retry"]);
  assert.equal(state.last, "9");
});

test("a broken connection resumes after the last event", async () => {
  serve(frame(1, "run_started", { query: "q" }) + frame("1.1", "text_delta", { text: "one " }) + "id: 1.2\neve", frame("1.2", "text_delta", { text: "two" }), "");
  await followToTheEnd();
  assert.deepEqual([resumedFrom, state.text], [["0", "1.1", "1.2"], "one two"]);
});

test("a resumed run sends its answer again", async () => {
  const mark = (end) => ({ start: 0, end, verdict: "found", reason: "" });
  serve(
    frame(1, "text_delta", { text: "one two" }) + frame("1.1", "marks_delta", { marks: [mark(7)] }) + frame(2, "run_resumed")
    + frame(3, "text_delta", { text: "one" }) + frame("3.1", "marks_delta", { marks: [mark(3)] }),
  );
  await followToTheEnd();
  assert.deepEqual([state.stale, state.text, state.marks], ["one two", "one", [mark(3)]]);
});

test("facts that the log has drawn already are not drawn again", async () => {
  loadTimeline({ bars: [{ lane: "page", who: "", label: "a.example", start: 0, end: 1 }], facts: 2, seconds: 5 });
  serve(frame(1, "page_fetched", { url: "https://a.example/" }) + frame(2, "page_fetched", { url: "https://b.example/" }) + frame(3, "page_fetched", { url: "https://c.example/" }));
  await followToTheEnd();
  assert.deepEqual(state.bars.map((bar) => bar.label), ["a.example", "c.example"]);
});

test("a call is open until its end is told", async () => {
  serve(
    frame(1, "model_asked", { call: 1, purpose: "answer" }) + frame(2, "model_asked", { call: 1, purpose: "answer", agent: "1.1" })
    + frame(3, "tool_started", { call_id: "c1", name: "web_get", arguments: "{}" }) + frame(4, "tool_started", { call_id: "c2", name: "web_search", arguments: "{}" })
    + frame(5, "model_replied", { call: 1, seconds: 1, usage: {} }) + frame(6, "tool_finished", { call_id: "c2" }),
  );
  await followToTheEnd();
  assert.deepEqual([...state.open].map(([key, bar]) => [key, bar.lane, bar.who]), [["model|1.1|1", "model", "1.1"], ["tool||c1", "page", ""]]);
});

test("a run that was stopped before it read anything is no failure", async () => {
  serve(frame(1, "run_failed", { code: "no_evidence", message: "there is no answer", cause: "it was stopped", fix: "ask again", stop: "cancelled" }));
  await followToTheEnd();
  assert.deepEqual([byId("notes").children, byId("status").textContent, byId("copy").hidden], [[], "Stopped before anything was read", true]);
});

test("a run that failed says why, and the form can be used again", async () => {
  serve(frame(1, "run_failed", { message: "no model", cause: "it is off", fix: "start it" }));
  await followToTheEnd();
  assert.deepEqual(byId("notes").children.map((note) => [note.className, ...wordsOf(note)]), [["problem", "No model", "It is off.", "What to do:", " ", "Start it.", "Retry"]]);
  assert.deepEqual([byId("status").textContent, byId("go").disabled, byId("stop").hidden, state.source], ["No answer", false, true, null]);
});
