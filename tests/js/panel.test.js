import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { FakeElement, fakePage, fakeTimers } from "./page.js";

let byId = fakePage();
const timers = fakeTimers();
const { bindSearchField, removeItem, setPanelMessage, showPanel } = await import("../../nexi/web/page/panel.js");

beforeEach(() => {
  byId = fakePage();
  for (const name of ["runs", "knowledge", "setup"]) byId(name).hidden = true;
});

const hidden = () => ["runs", "knowledge", "setup"].map((name) => byId(name).hidden);
const expanded = () => ["runs", "knowledge", "setup"].map((name) => byId(`show-${name}`).attributes["aria-expanded"]);

test("one panel is open at a time, and none gives back what was shown", async () => {
  const filled = [];
  await showPanel("runs", async () => filled.push("runs"));
  assert.deepEqual([hidden(), expanded(), document.activeElement], [[false, true, true], ["true", "false", "false"], byId("runs-head")]);
  await showPanel("setup", async () => filled.push("setup"));
  assert.deepEqual([hidden(), expanded(), document.body.className], [[true, true, false], ["false", "false", "true"], "panel-open"]);
  await showPanel("");
  assert.deepEqual([hidden(), document.body.className, filled], [[true, true, true], "", ["runs", "setup"]]);
});

test("a panel that cannot be filled says why", async () => {
  await showPanel("knowledge", async () => { throw new Error("the store is locked"); });
  assert.equal(byId("knowledge-message").textContent, "the store is locked");
});

test("typing searches once after a pause, without the blanks around the words", async () => {
  const wanted = [];
  await bindSearchField("runs", async (text) => { wanted.push(text); });
  for (const text of ["m", "mo", " moon "]) { byId("runs-filter").value = text; byId("runs-filter").oninput(); timers.tick(199); }
  assert.deepEqual(wanted, [""]);
  timers.tick(1);
  assert.deepEqual(wanted, ["", "moon"]);
});

test("a reply or an error that comes after a newer search is dropped", async () => {
  const waiting = [], latest = [];
  const find = (text, isLatest) => new Promise((resolve, reject) => waiting.push({ resolve: () => { latest.push([text, isLatest()]); resolve(); }, reject }));
  const first = bindSearchField("runs", find);
  byId("runs-filter").value = "moon";
  byId("runs-filter").oninput();
  timers.tick(200);
  byId("runs-filter").oninput();
  timers.tick(200);
  waiting[0].resolve();
  waiting[1].reject(new Error("too late"));
  waiting[2].resolve();
  await first;
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([latest, byId("runs-message").textContent], [[["", false], ["moon", true]], ""]);
});

test("an error of the newest search is shown", async () => {
  setPanelMessage("runs", "");
  await bindSearchField("runs", async () => { throw new Error("no server"); });
  assert.equal(byId("runs-message").textContent, "no server");
});

test("a removed row gives the focus to its neighbour, and the last one to the search field", () => {
  const focused = [];
  const section = new FakeElement(), list = new FakeElement(), rows = ["a", "b", "c"].map(() => new FakeElement("li"));
  section.append(list);
  section.querySelector = () => ({ focus: () => focused.push("field") });
  list.append(...rows);
  rows.forEach((row, i) => { row.querySelector = () => ({ focus: () => focused.push(i) }); });
  const siblings = () => rows.forEach((row) => {
    const at = list.children.indexOf(row);
    row.nextElementSibling = list.children[at + 1];
    row.previousElementSibling = at > 0 ? list.children[at - 1] : undefined;
  });
  for (const i of [1, 2, 0]) { siblings(); removeItem(rows[i]); }
  assert.deepEqual([focused, list.children.length], [[2, 0, "field"], 0]);
});
