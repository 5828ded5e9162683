// Tables that readers sort: what a cell is worth, and the order of rows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fakePage } from "./page.js";

fakePage();
const { numberOf, orderOf } = await import("../../nexi/web/page/tables.js");

test("a cell is the number that it begins with, however its digits are divided", () => {
  const cells = ["1,234.5", "1.234,5", "12,742 km", "3,5", "−7 °C", "$1,000", "2 467 m", "1.500.000", "1.5", "about"];
  assert.deepEqual(cells.map(numberOf), [1234.5, 1234.5, 12742, 3.5, -7, 1000, 2467, 1500000, 1.5, NaN]);
});

test("numbers are ordered by size, words by their letters, and empty cells stay last", () => {
  assert.deepEqual(orderOf(["549 m", "", "1,021 m", "486 m"], false), [3, 0, 2, 1]);
  assert.deepEqual(orderOf(["549 m", "", "1,021 m", "486 m"], true), [2, 0, 3, 1]);
  assert.deepEqual(orderOf(["Quebec", "Brooklyn", "Forth"], false), [1, 2, 0]);
});
