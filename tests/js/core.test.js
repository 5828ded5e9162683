import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { fakePage, fakeTimers, jsonReply } from "./page.js";

fakePage();
const timers = fakeTimers();
const { call, hostOf, problemOf } = await import("../../nexi/web/page/core.js");

let asked = [];
const answer = (...replies) => { globalThis.fetch = async (path, options) => { asked.push([path, options]); const next = replies.shift(); if (next instanceof Error) throw next; return next; }; };

beforeEach(() => { asked = []; });

test("a problem is told with its cause and its fix, in every shape the server has", () => {
  assert.equal(problemOf({ error: { message: "no model", cause: "it is off", fix: "start it" } }), "no model. it is off. start it");
  assert.equal(problemOf({ error: "no model", fix: "start it" }), "no model. start it");
  assert.deepEqual([problemOf(null), problemOf("text"), problemOf({}), problemOf({ error: { message: 4 } })], ["", "", "", ""]);
});

test("a host is taken from an address, and what is none stays", () => {
  assert.deepEqual([hostOf("https://a.example:8443/b"), hostOf("not an address")], ["a.example", "not an address"]);
});

test("a call gives JSON or text, and names the content of a text body", async () => {
  answer(jsonReply({ a: 1 }), new Response("words", { headers: { "content-type": "text/plain" } }));
  assert.deepEqual([await call("/a", { method: "POST", body: "{}" }), await call("/b")], [{ a: 1 }, "words"]);
  assert.deepEqual(asked.map(([path, options]) => [path, options.headers]), [["/a", { "content-type": "application/json" }], ["/b", {}]]);
});

test("a refusal is an error that says why", async () => {
  answer(jsonReply({ error: { message: "no such run", fix: "open /" } }, 404), new Response("", { status: 502 }));
  await assert.rejects(call("/a"), new Error("no such run. open /"));
  await assert.rejects(call("/b"), new Error("the server answered 502"));
});

test("a call that only looks is tried three times", async () => {
  answer(new TypeError("network"), new TypeError("network"), jsonReply({ a: 1 }));
  const reply = call("/a");
  for (let i = 0; i < 3; i++) await timers.pass(400);
  assert.deepEqual([await reply, asked.length], [{ a: 1 }, 3]);
});

test("after three tries the server cannot be reached", async () => {
  answer(...Array(4).fill(new TypeError("network")));
  const reply = assert.rejects(call("/a"), new Error("the server cannot be reached. Is it running?"));
  for (let i = 0; i < 3; i++) await timers.pass(400);
  await reply;
  assert.equal(asked.length, 3);
});

test("a call that changes something is never sent twice", async () => {
  answer(new TypeError("network"), jsonReply({}));
  await assert.rejects(call("/a", { method: "POST" }), /cannot be reached/);
  assert.equal(asked.length, 1);
});

test("a call that was refused before another one was given a token is sent again with it, and asks for none", async () => {
  let kept = "";
  globalThis.sessionStorage = { getItem: () => kept };
  const sent = [];
  globalThis.fetch = async (path, { headers }) => {
    sent.push(headers.authorization ?? "");
    if (headers.authorization) return jsonReply({ ok: true });
    kept = "secret"; // the dialog of another call was answered while this one was on its way
    return { status: 401, ok: false, headers: new Map([["content-type", "application/json"]]), json: async () => ({}) };
  };
  assert.deepEqual(await call("/page/form"), { ok: true });
  assert.deepEqual(sent, ["", "Bearer secret"]);
});
