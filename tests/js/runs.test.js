import assert from "node:assert/strict";
import { test } from "node:test";
import { fakePage } from "./page.js";

fakePage();
const { foldRepeats, groupDays, groupRuns } = await import("../../nexi/web/page/runs.js");

test("the runs of a conversation stand together, the first question first", () => {
  const items = [["e", "b"], ["d", "d"], ["c", "b"], ["b", "b"], ["a", undefined]].map(([id, thread]) => ({ id, thread }));
  assert.deepEqual(groupRuns(items).map((group) => group.map((item) => item.id)), [["b", "c", "e"], ["d"], ["a"]]);
});

test("conversations that begin with the same question are one row, but for those with a name or a pin", () => {
  const groups = [["e", "Why?"], ["d", "How?"], ["c", " why? "], ["b", "Why?", { title: "Mine" }], ["a", "WHY?", { space: "flat" }]].map(([id, question, more]) => [{ id, question, space: "", ...more }]);
  assert.deepEqual(foldRepeats(groups).map((same) => same.map(([item]) => item.id)), [["e", "c"], ["d"], ["b"], ["a"]]);
});

test("rows stand under their day in the language of the page, and those with a pin before all days", () => {
  const at = (days) => new Date(new Date().setHours(12, 0, 0, 0) - days * 864e5).toISOString();
  const folded = [["p", 9, true], ["a", 0], ["b", 0], ["c", 1], ["d", 400]].map(([id, days, pinned]) => [[{ id, pinned, created: at(days) }]]);
  const found = groupDays([...folded, [[{ id: "e", created: "" }]]]).map(([day, rows]) => [day, rows.map(([[item]]) => item.id).join("")]);
  const old = new Date(at(400)).toLocaleDateString("en", { dateStyle: "full" });
  assert.deepEqual(found, [["Pinned", "p"], ["Today", "ab"], ["Yesterday", "c"], [old, "d"], ["", "e"]]);
});
