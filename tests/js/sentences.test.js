import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fakePage, jsonReply, wordsOf } from "./page.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../nexi/web/page/texts/${name}.json`, import.meta.url), "utf8"));
const byId = fakePage({ lang: "de", texts: read("de").scripts });
const { readTable, translate } = await import("../../nexi/web/page/sentences.js");
const german = readTable(read("de").sentences);

test("a sentence of the server is in the language of the page, with its values", () => {
  assert.equal(translate(german, "No internet connection"), "Keine Internetverbindung");
  assert.equal(translate(german, "127.0.0.1:9/v1 cannot be reached"), "127.0.0.1:9/v1 ist nicht erreichbar");
  assert.equal(translate(german, "the source says '14' where the sentence says '41'"), "die Quelle sagt '14', wo der Satz '41' sagt");
});

test("what stands inside a sentence or is joined to it is translated too", () => {
  assert.equal(translate(german, "the web could not be searched: neither DuckDuckGo nor Wikipedia could be reached"), "Das Web ließ sich nicht durchsuchen: weder DuckDuckGo noch Wikipedia war zu erreichen");
  assert.equal(translate(german, "No internet connection: Wikipedia could not be reached"), "Keine Internetverbindung: Wikipedia war nicht zu erreichen");
  assert.equal(translate(german, "2 of 3 sentences left out: rules do not find them in the pages"), "2 von 3 Sätzen weggelassen: Regeln finden sie nicht in den Seiten");
});

test("the longer of two sentences that fit is taken", () => {
  assert.equal(translate(german, "the name of api.example cannot be resolved"), "Der Name api.example lässt sich nicht auflösen");
});

test("what the table does not have stays as it is", () => {
  assert.equal(translate(german, "Insufficient credits: ask (again)."), "Insufficient credits: ask (again).");
  assert.equal(translate(german, ""), "");
});

test("every sentence of English is found by itself in each language", () => {
  for (const name of ["de", "es", "fr", "zh"]) {
    const { sentences } = read(name), table = readTable(sentences);
    assert.deepEqual(Object.entries(sentences).filter(([english, words]) => translate(table, english) !== words), [], name);
  }
});

test("a card is in English at once, and in the language of the page when its sentences are there", async () => {
  globalThis.fetch = async (path) => { assert.equal(path, "/static/sentences"); return jsonReply(read("de").sentences); };
  const { showProblem } = await import("../../nexi/web/page/problem.js");
  showProblem({ code: "connect", message: "127.0.0.1:9/v1 cannot be reached", cause: "nothing answers at that address" });
  const card = byId("notes").children[0];
  assert.deepEqual(wordsOf(card).slice(0, 2), ["127.0.0.1:9/v1 cannot be reached", "Nothing answers at that address."]);
  for (let i = 0; i < 50 && wordsOf(card)[0].includes("cannot"); i++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(wordsOf(card).slice(0, 2), ["127.0.0.1:9/v1 ist nicht erreichbar", "Unter dieser Adresse antwortet nichts."]);
});

test("several sentences in a row are translated one by one, and those with a full stop inside as one", () => {
  assert.equal(
    translate(german, "The words and every hard fact of the sentence are in the cited page. No judge says more. By rules alone it is right for 94 % of 1,234 sentences labelled by people (90 to 96 % by set)."),
    "Die Wörter und alle harten Fakten des Satzes stehen in der zitierten Seite. Mehr sagt kein Gutachter. Nach Regeln allein stimmt das bei 94 % von 1,234 Sätzen, die Menschen beurteilt haben (je nach Satzmenge 90 bis 96 %).",
  );
});
