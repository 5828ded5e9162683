import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";
import { fakePage, wordsOf } from "./page.js";

const byId = fakePage();
const { CARDS, cardOf, showProblem } = await import("../../nexi/web/page/problem.js");
const texts = JSON.parse(readFileSync(new URL("../../nexi/web/page/texts/en.json", import.meta.url), "utf8")).scripts;

beforeEach(() => { byId("notes").replaceChildren(); });
const shown = (problem) => { showProblem(problem); return wordsOf(byId("notes").children[0]); };

test("a card has one cause, one fix and the buttons of its code", () => {
  assert.deepEqual(shown({ code: "no_evidence", message: "No internet connection", cause: "neither DuckDuckGo nor Wikipedia could be reached", fix: "use --local" }), [
    "No internet connection", "Neither DuckDuckGo nor Wikipedia could be reached.", "What to do:", " ", texts["card.fix_search"], "Retry", "Check setup",
  ]);
});

test("a search service that says what to do about it is believed, and a command is shown as one", () => {
  const failed = { code: "no_evidence", message: "there is no answer with evidence", cause: "SearXNG refuses to answer in JSON" };
  assert.deepEqual(shown({ ...failed, fix: "add `json` to search.formats in its settings.yml and restart it" }).slice(2, 5), ["What to do:", " ", "Add `json` to search.formats in its settings.yml and restart it."]);
  byId("notes").replaceChildren();
  assert.deepEqual(shown({ ...failed, fix: "nexi config set allow_private intranet" }).slice(2, 5), ["What to do:", " ", "nexi config set allow_private intranet"]);
});

test("the knowledge store is offered only where something is in it", async () => {
  for (const [total, last] of [[0, "Check setup"], [3, "Use the knowledge store"]]) {
    globalThis.fetch = async () => ({ ok: true, status: 200, headers: new Map([["content-type", "application/json"]]), json: async () => ({ total }) });
    await showProblem({ code: "no_evidence", message: "none" });
    assert.equal(wordsOf(byId("notes").children.at(-1)).at(-1), last);
  }
});

test("a model that cannot be used leads to the setup, and one that is busy does not", () => {
  assert.deepEqual(shown({ code: "auth", message: "api.example refused the API key" }), ["Api.example refused the API key", "What to do:", " ", texts["card.fix_auth"], "Retry", "Check setup"]);
  byId("notes").replaceChildren();
  assert.deepEqual(shown({ code: "rate_limit", message: "wait" }).slice(-1), ["Retry"]);
});

test("an unknown code can be retried and says what its sender says", () => {
  assert.deepEqual(shown({ code: "of_tomorrow", message: "it broke", fix: "try it again!" }), ["It broke", "What to do:", " ", "Try it again!", "Retry"]);
  assert.deepEqual(cardOf("toString"), { buttons: ["retry"] });
});

test("a local question is not told to look at the search service", () => {
  assert.deepEqual(shown({ code: "no_evidence", message: "the knowledge base is empty", fix: "add files", isLocal: true }), ["The knowledge base is empty", "What to do:", " ", "Add files.", "Retry"]);
});

test("nothing is offered where nothing would help", () => {
  assert.deepEqual(shown({ code: "question", message: "the question is empty" }), ["The question is empty"]);
});

test("every fix and every button has a text", () => {
  for (const card of Object.values(CARDS)) for (const name of [...card.buttons.map((button) => `card.${button}`), ...(card.fix ? [card.fix] : [])]) assert.ok(texts[name], name);
});

test("a button asks the page for what it says", async () => {
  const told = [];
  document.dispatchEvent = (event) => told.push(event.type);
  await showProblem({ code: "no_evidence", message: "none" });
  for (const button of byId("notes").children[0].children.at(-1).children) button.onclick();
  assert.deepEqual(told, ["wants-retry", "wants-setup", "wants-knowledge"]);
});
