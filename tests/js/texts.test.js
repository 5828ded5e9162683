import assert from "node:assert/strict";
import { test } from "node:test";
import { readFileSync, readdirSync } from "node:fs";
import { fakePage } from "./page.js";

const FOLDER = new URL("../../nexi/web/page/texts/", import.meta.url);
const read = (name) => JSON.parse(readFileSync(new URL(name, FOLDER), "utf8"));
const english = read("en.json");
const valuesOf = (text) => [...new Set(JSON.stringify(text).match(/\{(\w+)\}/g) || [])].sort();

let turn = 0;
// A module of its own for each page: one reads its texts once.
const load = async (options) => { fakePage(options); return import(`../../nexi/web/page/texts.js?${++turn}`); };

test("counts have the plural of their language, and numbers are grouped as there", async () => {
  const { say } = await load();
  assert.deepEqual([1, 0, 1234].map((n) => say("count.searches", { n })), ["1 search", "0 searches", "1,234 searches"]);
  const german = await load({ lang: "de", texts: read("de.json").scripts });
  assert.deepEqual([1, 1234].map((n) => german.say("count.searches", { n })), ["1 Suche", "1.234 Suchen"]);
  const french = await load({ lang: "fr", texts: read("fr.json").scripts });
  assert.deepEqual([0, 2].map((n) => french.say("count.pages", { n })), ["0 page", "2 pages"]);
  const chinese = await load({ lang: "zh", texts: read("zh.json").scripts });
  assert.deepEqual([1, 2].map((n) => chinese.say("count.pages", { n })), ["1 个页面", "2 个页面"]);
});

test("values stand in their places as they are, also those that look like a place", async () => {
  const { say } = await load({ texts: { a: "{x} of {y}{z}" } });
  assert.equal(say("a", { x: "{y}", y: "$&" }), "{y} of $&");
});

test("a name without a text is shown itself, so that nothing breaks", async () => {
  const { say } = await load({ texts: {} });
  assert.equal(say("stop.new_reason"), "stop.new_reason");
});

test("numbers and times are written in the language of the page", async () => {
  const { formatDate, formatNumber } = await load({ lang: "de" });
  assert.deepEqual([formatNumber(1234.56, 1), formatDate("2030-01-02T03:04:00").slice(0, 10)], ["1.234,6", "02.01.2030"]);
  assert.deepEqual([999, 1000, -5, 2.5].map((x) => formatNumber(x)), ["999", "1.000", "-5", "2,5"]);
});

test("a part of the page brings texts of its own", async () => {
  const { addTexts, say } = await load({ texts: { a: "one" } });
  addTexts({ b: "two {x}" });
  assert.deepEqual([say("a"), say("b", { x: "or three" })], ["one", "two or three"]);
});

test("every language has the texts of a team's parts with the same values", () => {
  const folder = new URL("../../nexi/team/web/page/texts/", import.meta.url), readTeam = (name) => JSON.parse(readFileSync(new URL(name, folder), "utf8"));
  const english = readTeam("en.json"), scripts = readdirSync(new URL("..", folder)).filter((name) => name.endsWith(".js"));
  for (const name of readdirSync(FOLDER)) {
    const words = readTeam(name);
    assert.deepEqual(Object.keys(words), Object.keys(english), name);
    for (const [key, text] of Object.entries(english)) assert.deepEqual(valuesOf(words[key]), valuesOf(text), `${name} ${key}`);
  }
  const used = scripts.flatMap((name) => [...readFileSync(new URL(`../${name}`, folder), "utf8").matchAll(/say\("([\w.]+)"/g)].map((match) => match[1]));
  assert.deepEqual(used.filter((key) => !(key in english) && !(key in read("en.json").scripts)), []);
});

test("every language has the texts of English with the same values", () => {
  const languages = readdirSync(FOLDER).filter((name) => name.endsWith(".json"));
  assert.deepEqual(languages.sort(), ["ar.json", "de.json", "en.json", "es.json", "fr.json", "zh.json"]);
  for (const name of languages) {
    const told = read(name);
    for (const section of ["page", "scripts"]) {
      assert.deepEqual(Object.keys(told[section]), Object.keys(english[section]), name);
      for (const [key, text] of Object.entries(english[section])) assert.deepEqual(valuesOf(told[section][key]), valuesOf(text), `${name} ${key}`);
    }
  }
});
