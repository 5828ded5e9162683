import assert from "node:assert/strict";
import test from "node:test";
import { buildOrder, buildRetryOrder, parseSites } from "../../nexi/web/page/order.js";

const FORM = { question: " how far? ", effort: "m", sites: "", time: "", focus: "", model: "", depth: "2", planned: false };

test("a plain question is a search with its effort", () => {
  assert.deepEqual(buildOrder(FORM), { question: "how far?", mode: "search", options: { time_range: "", focus: "", effort: "m" } });
});

test("a deep question has a depth and a plan in place of an effort", () => {
  assert.deepEqual(buildOrder({ ...FORM, effort: "deep", planned: true }), {
    question: "how far?", mode: "research", options: { time_range: "", focus: "", depth: 2, plan: true },
  });
});

test("every field of the form is in the order", () => {
  const form = { ...FORM, sites: "https://a.example/, -b.example", time: "w", focus: "code", model: "mine" };
  assert.deepEqual(buildOrder(form, "abc123"), {
    question: "how far?", mode: "search", continues: "abc123",
    options: { time_range: "w", focus: "code", sites: ["a.example"], excluded_sites: ["b.example"], model: "mine", effort: "m" },
  });
});

test("sites may be written as addresses, with blanks or commas, and a minus excludes", () => {
  assert.deepEqual(parseSites("HTTPS://a.example/, b.example/docs/\n-http://c.example - ,"), {
    sites: ["a.example", "b.example/docs"], excluded: ["c.example"],
  });
  assert.deepEqual(parseSites(" "), { sites: [], excluded: [] });
});

test("asking again keeps the filters of the run and takes the other model", () => {
  const asked = { mode: "search", effort: "l", query: { sites: ["a.example"], excluded_sites: [], time_range: "w", focus: "code" } };
  assert.deepEqual(buildRetryOrder("q", asked, { model: "other", continues: "abc123" }), {
    question: "q", mode: "search", continues: "abc123",
    options: { model: "other", effort: "l", sites: ["a.example"], time_range: "w", focus: "code" },
  });
});

test("a local run stays local when it is asked again", () => {
  assert.deepEqual(buildRetryOrder("q", { mode: "search", only_local: true }, { model: "other" }).options, { model: "other", focus: "local" });
});

test("research stays research, with no effort, and another mode becomes a search", () => {
  assert.deepEqual(buildRetryOrder("q", { mode: "research", effort: "m" }, { model: "o" }), { question: "q", mode: "research", options: { model: "o" } });
  assert.equal(buildRetryOrder("q", { mode: "agentic" }, { model: "o" }).mode, "search");
  assert.equal(buildRetryOrder("q", {}, { model: "o", mode: "research" }).mode, "research");
  assert.equal(buildRetryOrder("q", {}, { model: "o" }).mode, "search");
});

test("a run is retried with its model and its scope, and with no model where none was named", () => {
  const asked = { mode: "search", effort: "s", scope: "local", model: "small", query: { sites: ["a.example"] } };
  assert.deepEqual(buildRetryOrder("q", asked, { model: asked.model }), { question: "q", mode: "search", options: { model: "small", effort: "s", focus: "local", sites: ["a.example"] } });
  assert.deepEqual(buildRetryOrder("q", { mode: "research" }, { model: "" }), { question: "q", mode: "research", options: {} });
});
