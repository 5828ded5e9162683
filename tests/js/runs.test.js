import assert from "node:assert/strict";
import { test } from "node:test";
import { fakePage } from "./page.js";

fakePage();
const { groupRuns } = await import("../../nexi/web/page/runs.js");

test("the runs of a conversation stand together, the first question first", () => {
  const items = [["e", "b"], ["d", "d"], ["c", "b"], ["b", "b"], ["a", undefined]].map(([id, thread]) => ({ id, thread }));
  assert.deepEqual(groupRuns(items).map((group) => group.map((item) => item.id)), [["b", "c", "e"], ["d"], ["a"]]);
});
