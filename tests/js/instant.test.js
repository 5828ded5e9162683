// Answers that need no search, and what is left to one.
import assert from "node:assert/strict";
import { test } from "node:test";

import { answerInstantly } from "../../nexi/web/page/instant.js";

const NOW = new Date(2026, 10, 17, 12, 0);
const told = (text, language = "en") => { const found = answerInstantly(text, NOW, language); return found && [found.kind, found.value]; };

test("a sum keeps the order of its signs", () => {
  for (const [asked, value] of [["2+2*3", "8"], ["(2+2)*3", "12"], ["-2^2", "-4"], ["2^3^2", "512"], ["10 / 4 =", "2.5"], ["7 % 4", "3"], ["0.1+0.2", "0.3"], ["2 × 3", "6"], ["1-(-2)", "3"], ["1234567*2", "2,469,134"]]) {
    assert.deepEqual(told(asked), ["sum", `${asked.replace(" =", "")} = ${value}`]);
  }
});

test("what is no sum is left to the search", () => {
  for (const asked of ["2026", "2026-11-17", "1/0", "2+", "(2+3", "C++ 20", "555 12 34", "1,5 + 2", "9^9999", "+49 30 1234", "", "1+1".repeat(60)]) assert.equal(told(asked), null, asked);
});

test("units of one kind are converted, others are not", () => {
  assert.deepEqual(told("10 km in miles"), ["unit", "10 km = 6.21371192 miles"]);
  assert.deepEqual(told("72 f to c"), ["unit", "72 f = 22.22222222 c"]);
  assert.deepEqual(told("-40 °C to °F"), ["unit", "-40 °C = -40 °F"]);
  assert.deepEqual(told("100 km/h in mph"), ["unit", "100 km/h = 62.13711922 mph"]);
  assert.deepEqual(told("1.5 kg nach g", "de"), ["unit", "1,5 kg = 1.500 g"]);
  for (const asked of ["10 km in kg", "10 apples in pears", "1,5 kg in g", "5 constructor in toString"]) assert.equal(told(asked), null, asked);
});

test("days are counted by the calendar", () => {
  assert.deepEqual(told("days until 2026-12-24"), ["days", "37"]);
  assert.deepEqual(told("days since 2026-11-01?"), ["days", "16"]);
  assert.deepEqual(told("days between 2024-02-28 and 2024-03-01"), ["days", "2"]);
  assert.equal(told("days until 2026-02-30"), null);
});

test("the time of a place is told with the name of its zone", () => {
  const now = new Date("2026-11-17T12:00:00Z");
  assert.deepEqual(answerInstantly("time in Tokyo", now), { kind: "clock", value: "Tuesday 09:00 PM (Asia/Tokyo)" });
  assert.match(answerInstantly("Uhrzeit in New York?", now, "de").value, /^Dienstag,? (um )?07:00 \(America\/New_York\)$/);
  assert.equal(told("time in Atlantis"), null);
});
