import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { fakePage } from "./page.js";
import * as run from "../../nexi/web/page/state.js";

fakePage();

const { state } = run;

beforeEach(() => { run.resetRun(); run.setContinuedRun(""); });

test("no other file can set a field", () => {
  assert.throws(() => { state.id = "abc123"; }, /state\.id is set by a function of state\.js/);
  assert.equal(state.id, "");
});

test("a new run begins with nothing of the one before, and keeps the form and what it continues", () => {
  let closed = 0;
  run.setRunId("abc123");
  run.setConnection({ close: () => { closed++; } });
  run.setLastEvent("7.2");
  run.appendText("words");
  run.addMarks([{ start: 0, end: 5, verdict: "found" }]);
  run.addBar({ lane: "model" });
  run.addUsage({ input_tokens: 3, output_tokens: 2, cost: 0.5 });
  run.openBar("model||1", { lane: "model", start: 1 });
  run.applyWorkEvent("researcher_started", { researcher: "1.1", round: 1, task: "look" });
  run.setFinishedRun({ id: "abc123" });
  run.setRequest({ effort: "s" });
  run.setPreviousRun("ffffff");
  run.wantStop();
  run.setForm({ effort: "m" });
  run.setContinuedRun("ffffff");
  run.resetRun();
  const { started, work, open, ...rest } = state;
  assert.equal(closed, 1);
  assert.deepEqual(rest, {
    id: "", source: null, last: "", text: "", marks: [], stale: "", bars: [], known: 0, run: null, asked: {}, before: "", spent: {},
    isStopWanted: false,
    continues: "ffffff", space: "", defaults: {}, form: { effort: "m" }, turns: new Map(),
  });
  assert.deepEqual([[...work.agents.keys()], open.size], [[""], 0]);
});

test("a new connection closes the one before it", () => {
  const closed = [], connection = (name) => ({ close: () => closed.push(name) }), second = connection("second");
  run.setConnection(connection("first"));
  run.setConnection(second);
  assert.deepEqual([closed, state.source], [["first"], second]);
  run.setConnection(null);
  assert.deepEqual([closed, state.source], [["first", "second"], null]);
});

test("a resumed run sends its text again", () => {
  run.appendText("one ");
  run.appendText("two");
  run.restartText();
  run.appendText("one");
  assert.deepEqual([state.stale, state.text], ["one two", "one"]);
});

test("what a run spends adds up, and a call without figures adds nothing", () => {
  run.addUsage({ input_tokens: 3, output_tokens: 2, cost: 0.25 });
  run.addUsage(undefined);
  run.addUsage({ input_tokens: 10, cost: 0.25 });
  run.countSpent("calls");
  run.countSpent("calls");
  run.countSpent("pages");
  assert.deepEqual(state.spent, { tokens: 15, cost: 0.5, calls: 2, pages: 1 });
});

test("the timeline of a log says how long ago the run began", () => {
  run.loadTimeline({ bars: [{ lane: "page" }], open: [{ key: "model||2", lane: "model", start: 58 }], facts: 4, seconds: 60 });
  assert.deepEqual([state.bars, [...state.open.keys()], state.known], [[{ lane: "page" }], ["model||2"], 4]);
  run.closeBar("model||2");
  assert.equal(state.open.size, 0);
  assert.ok(Math.abs(performance.now() - state.started - 60_000) < 5_000);
});
