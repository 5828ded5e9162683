import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { FakeElement, fakePage, fakeTimers, jsonReply, paragraph } from "./page.js";

const byId = fakePage(), { pass } = fakeTimers();
const { isShowable, marksBetween, patchNodes, renderSoon, settledLength } = await import("../../nexi/web/page/draft.js");
const { appendText, resetRun, restartText, setConnection, setRunId } = await import("../../nexi/web/page/state.js");

const texts = (target) => target.childNodes.map((node) => node.textContent);

test("a text settles up to its last heading", () => {
  const text = "# One\n\nwords\n\n## Two\n\nmore\n\n## Three\n\nhalf";
  assert.equal(text.slice(0, settledLength(text)), "# One\n\nwords\n\n## Two\n\nmore\n\n");
});

test("a text without a second heading has not settled", () => {
  for (const text of ["", "words", "# One\n\nwords", "words\n# no blank line before it", "\n\n# at the very start"]) assert.equal(settledLength(text), 0, text);
});

test("a heading inside a fence settles nothing", () => {
  assert.equal(settledLength("a\n\n```\ncode\n\n# a comment\n"), 0);
  assert.equal(settledLength("a\n\n```\ncode\n```\n\n# A heading\n"), 17);
});

test("a resumed answer is shown once there is as much of it, and no answer beyond all measure", () => {
  assert.deepEqual([isShowable("abc", ""), isShowable("ab", "abc"), isShowable("abc", "abc")], [true, false, true]);
  assert.deepEqual([isShowable("x".repeat(389_999), ""), isShowable("x".repeat(390_000), "")], [true, false]);
});

test("a part of a text has its own marks, counted in characters", () => {
  const text = "😀 one. two. three.", marks = [{ start: 0, end: 6, verdict: "found" }, { start: 7, end: 11, verdict: "not_found", reason: "no" }];
  assert.deepEqual(marksBetween(marks, text, 0, 7), [{ start: 0, end: 6, verdict: "found" }]);
  assert.deepEqual(marksBetween(marks, text, 8, text.length), [{ start: 0, end: 4, verdict: "not_found" }]);
  assert.deepEqual(marksBetween([], text, 0, 7), []);
});

test("equal nodes stay and the rest is replaced", () => {
  const target = new FakeElement(), [a, b, c] = ["a", "b", "c"].map(paragraph);
  target.append(a, b, c);
  const changed = paragraph("B"), added = paragraph("d");
  patchNodes(target, [paragraph("a"), changed, paragraph("c"), added]);
  assert.deepEqual(texts(target), ["a", "B", "c", "d"]);
  assert.equal(target.childNodes[0], a);
  assert.equal(target.childNodes[1], changed);
});

test("a shorter text takes nodes away, and what has settled stays", () => {
  const target = new FakeElement(), settled = Object.assign(paragraph("settled"), { className: "settled" }), a = paragraph("a");
  target.append(settled, a, paragraph("b"));
  patchNodes(target, [paragraph("a")]);
  assert.deepEqual(target.childNodes, [settled, a]);
});

// the answer under way: the server makes HTML of the text, which the fake page keeps as one node

let rendered = [];

beforeEach(() => {
  rendered = [];
  globalThis.fetch = async (path, { body }) => { rendered.push(JSON.parse(body).text); return jsonReply({ html: JSON.parse(body).text }); };
  const create = document.createElement;
  document.createElement = (tag) => {
    const made = create(tag);
    if (tag === "template") made.content = { get childNodes() { return made.innerHTML ? [paragraph(made.innerHTML)] : []; } };
    return made;
  };
  resetRun();
  setRunId("abc123");
  setConnection({ close() {} });
  byId("answer").replaceChildren();
  byId("answer").dataset = {};
});

test("text that comes while another is rendered is rendered after it", async () => {
  appendText("one");
  renderSoon();
  renderSoon();
  await pass(149);
  assert.deepEqual(rendered, []);
  await pass(1);
  appendText(" two");
  renderSoon();
  await pass(150);
  assert.deepEqual([rendered, texts(byId("answer"))], [["one", "one two"], ["one two"]]);
});

test("a long answer is rendered again only after its settled part", async () => {
  const first = `# One\n\n${"x".repeat(8000)}\n\n`;
  appendText(`${first}## Two\n\nmore`);
  renderSoon();
  await pass(150);
  assert.deepEqual(rendered, [first, "## Two\n\nmore"]);
  assert.deepEqual([byId("answer").dataset.cut, byId("answer").children[0].className], [first.length, "settled"]);
  appendText(" words");
  renderSoon();
  await pass(150);
  assert.deepEqual(rendered.slice(2), ["## Two\n\nmore words"]);
});

test("the first words of a resumed answer do not take the place of what is shown", async () => {
  appendText("a whole sentence");
  renderSoon();
  await pass(150);
  restartText();
  appendText("a whole");
  renderSoon();
  await pass(150);
  assert.deepEqual([rendered, texts(byId("answer"))], [["a whole sentence"], ["a whole sentence"]]);
});

test("a server that fails is asked again later, and the answer stays", async () => {
  appendText("one");
  renderSoon();
  await pass(150);
  const works = globalThis.fetch;
  globalThis.fetch = async () => new Response("", { status: 500 });
  appendText(" two");
  renderSoon();
  await pass(150);
  assert.deepEqual(texts(byId("answer")), ["one"]);
  globalThis.fetch = works;
  await pass(500);
  await pass(150);
  assert.deepEqual(texts(byId("answer")), ["one two"]);
});

test("an answer of another run is not shown", async () => {
  appendText("one");
  renderSoon();
  const works = globalThis.fetch;
  globalThis.fetch = async (...asked) => { setRunId("ffffff"); return works(...asked); };
  await pass(150);
  assert.deepEqual(texts(byId("answer")), []);
  setConnection(null);
});
