import assert from "node:assert/strict";
import test from "node:test";
import { spentRows } from "../../nexi/web/page/spent.js";
import { fakePage } from "./page.js";

fakePage();

test("a run that has spent nothing shows noughts and no limits", () => {
  assert.deepEqual(spentRows({}), [["Time", "0 s", ""], ["Tokens", "0", ""], ["Cost", "–", ""], ["Model calls", "0", ""], ["Pages", "0", ""]]);
});

test("what is left of each limit is shown, and never less than nothing", () => {
  const limits = { time_target: 60, max_tokens: 5000, max_cost: 1, max_model_calls: 4, max_pages: 2 };
  assert.deepEqual(spentRows({ seconds: 12.9, tokens: 1234, cost: 0.05, calls: 1, pages: 3 }, limits), [
    ["Time", "12 s", "47 s left"], ["Tokens", "1,234", "3,766 left"], ["Cost", "$0.0500", "$0.95 left"], ["Model calls", "1", "3 left"], ["Pages", "3", "0 left"],
  ]);
});

test("a limit of the question goes before that of the form", () => {
  const rows = spentRows({ seconds: 1, cost: 0.5 }, { time_target: 60, max_cost: 1 }, { time_target: 10, max_cost: 0.55 });
  assert.deepEqual([rows[0][2], rows[2][2]], ["9 s left", "$0.0500 left"]);
});
