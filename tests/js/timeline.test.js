import assert from "node:assert/strict";
import test from "node:test";
import { mergeBars, summarise } from "../../nexi/web/page/timeline.js";
import { fakePage } from "./page.js";

fakePage();

const bar = (start, end, more = {}) => ({ lane: "page", who: "", failed: false, label: "a.example", start, end, ...more });

test("bars closer than the gap become one that counts them", () => {
  assert.deepEqual(mergeBars([bar(0, 1), bar(1.5, 2), bar(4, 5)], 0.5), [bar(0, 2, { count: 2 }), bar(4, 5)]);
});

test("a bar inside another does not shorten it", () => {
  assert.deepEqual(mergeBars([bar(0, 5), bar(1, 2)], 0), [bar(0, 5, { count: 2 })]);
});

test("bars of another kind, researcher or outcome stay apart", () => {
  const bars = [bar(0, 1), bar(0, 1, { lane: "model" }), bar(0, 1, { who: "1.1" }), bar(0, 1, { failed: true })];
  assert.deepEqual(mergeBars(bars, 1), bars);
});

test("bars may come in any order, and the given ones stay as they are", () => {
  const bars = [bar(4, 5, { count: 3 }), bar(0, 1), bar(3, 4)];
  const before = structuredClone(bars);
  assert.deepEqual(mergeBars(bars, 0), [bar(0, 1), bar(3, 5, { count: 4 })]);
  assert.deepEqual(bars, before);
});

test("the summary for a screen reader counts what merged bars stand for", () => {
  const bars = [bar(0, 1, { count: 2 }), bar(2, 3), bar(0, 1, { lane: "model" }), bar(0, 1, { lane: "search" }), bar(1, 2, { lane: "search" })];
  assert.equal(summarise(bars), "3 pages, 1 model call, 2 searches");
  assert.equal(summarise([]), "");
});
