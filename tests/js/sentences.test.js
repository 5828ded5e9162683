import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fakePage, jsonReply, wordsOf } from "./page.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../nexi/web/page/texts/${name}.json`, import.meta.url), "utf8"));
const byId = fakePage({ lang: "de", texts: read("de").scripts });
const { translate } = await import("../../nexi/web/page/sentences.js");
const german = read("de").sentences;
const table = (notices) => new Map(Object.entries(notices));

test("a sentence of the server is in the language of the page, with its values", () => {
  const notices = table({
    "No internet connection": { code: "network.none", values: {} },
    "127.0.0.1:9/v1 cannot be reached": { code: "model.unreachable", values: { where: "127.0.0.1:9/v1" } },
  });
  assert.equal(translate(german, notices, "No internet connection"), "Keine Internetverbindung");
  assert.equal(translate(german, notices, "127.0.0.1:9/v1 cannot be reached"), "127.0.0.1:9/v1 ist nicht erreichbar");
});

test("a sentence among the values of another is translated too", () => {
  const inner = "neither DuckDuckGo nor Wikipedia could be reached", outer = `the web could not be searched: ${inner}`;
  const notices = table({
    [outer]: { code: "search.failed", values: { cause: inner } },
    [inner]: { code: "services.neither", values: { services: "DuckDuckGo", last: "Wikipedia" } },
  });
  assert.equal(translate(german, notices, outer), "Das Web ließ sich nicht durchsuchen: weder DuckDuckGo noch Wikipedia war zu erreichen");
});

test("what has no code, or one that is not known, stays as it is", () => {
  const notices = table({ "Odd.": { code: "of.tomorrow", values: {} }, "Odder.": { code: "constructor", values: {} } });
  assert.deepEqual(["Insufficient credits (again).", "Odd.", "Odder.", ""].map((text) => translate(german, notices, text)), ["Insufficient credits (again).", "Odd.", "Odder.", ""]);
});

test("a sentence that is its own value ends", () => {
  const notices = table({ a: { code: "joined.also", values: { first: "a", second: "b" } } });
  assert.ok(translate(german, notices, "a").endsWith("; b"));
});

test("a card is in English at once, and in the language of the page when its sentences are there", async () => {
  globalThis.fetch = async (path) => { assert.equal(path, "/static/sentences"); return jsonReply(german); };
  const { remember } = await import("../../nexi/web/page/texts.js"), { showProblem } = await import("../../nexi/web/page/problem.js");
  remember({ notices: { "127.0.0.1:9/v1 cannot be reached": { code: "model.unreachable", values: { where: "127.0.0.1:9/v1" } }, "nothing answers at that address": { code: "network.no_listener", values: {} } } });
  showProblem({ code: "connect", message: "127.0.0.1:9/v1 cannot be reached", cause: "nothing answers at that address" });
  const card = byId("notes").children[0];
  assert.deepEqual(wordsOf(card).slice(0, 2), ["127.0.0.1:9/v1 cannot be reached", "Nothing answers at that address."]);
  for (let i = 0; i < 50 && wordsOf(card)[0].includes("cannot"); i++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(wordsOf(card).slice(0, 2), ["127.0.0.1:9/v1 ist nicht erreichbar", "Unter dieser Adresse antwortet nichts."]);
});

test("an error of a reply is translated sentence by sentence", async () => {
  globalThis.fetch = async () => jsonReply(german);
  const { remember, tell } = await import("../../nexi/web/page/texts.js"), { problemOf } = await import("../../nexi/web/page/core.js");
  const told = problemOf(remember({ error: { code: "no_such_run", message: "There is no run abc123", cause: "it was never made here, or it was removed" }, notices: { "There is no run abc123": { code: "run.missing", values: { run: "abc123" } }, "it was never made here, or it was removed": { code: "run.never_made", values: {} } } }));
  const node = tell(document.createElement("p"), told);
  assert.equal(node.textContent, "There is no run abc123. it was never made here, or it was removed");
  for (let i = 0; i < 50 && node.textContent.includes("never"); i++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(node.textContent, `${german["run.missing"].replace("{run}", "abc123")}. ${german["run.never_made"]}`);
});
