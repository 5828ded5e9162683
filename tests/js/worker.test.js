import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const SOURCE = readFileSync(new URL("../../nexi/web/page/worker.js", import.meta.url), "utf8");

// The worker with caches in memory. As in a browser, what the cache has under a key is gone before the new answer is read.
function startWorker(fetch) {
  const stores = new Map(), handlers = {};
  const open = async (name) => {
    if (!stores.has(name)) stores.set(name, new Map());
    const kept = stores.get(name), keyOf = (request) => request.url ?? request;
    return {
      keys: async () => [...kept.keys()],
      delete: async (request) => kept.delete(keyOf(request)),
      put: async (request, answer) => { kept.delete(keyOf(request)); kept.set(keyOf(request), await answer.text()); },
    };
  };
  const caches = { open, delete: async (name) => stores.delete(name), match: async (request) => [...stores.values()].map((kept) => kept.get(request.url ?? request)).find(Boolean) };
  const self = { location: { href: "http://here/static/worker.js?answers", origin: "http://here" }, addEventListener: (name, handler) => { handlers[name] = handler; } };
  vm.runInNewContext(SOURCE, { self, caches, fetch, URL, Headers, Response, Promise, Error });
  const send = async (name, event) => { let work; handlers[name]({ ...event, waitUntil: (promise) => { work = promise; }, respondWith: (promise) => { work = promise; } }); return work; };
  return { kept: (name) => Object.fromEntries(stores.get(name) ?? []), tell: (paths) => send("message", { data: paths }), ask: (path) => send("fetch", { request: { method: "GET", url: `http://here${path}`, headers: new Headers() } }) };
}

const whole = (text) => new Response(text, { headers: { "content-encoding": "gzip" } });
const broken = () => new Response(new ReadableStream({ start(controller) { controller.error(new TypeError("network lost")); } }));

test("a network that breaks while the page is kept anew takes nothing of the kept one away", async () => {
  let version = "1", lost = false;
  const worker = startWorker(async (path) => (lost && path === "/" ? broken() : whole(`${path} ${version}`)));
  await worker.tell(["/static/app.js"]);
  version = "2";
  lost = true;
  await worker.tell(["/static/app.js"]);
  assert.deepEqual(worker.kept("nexi-shell"), { "/": "/ 1", "/static/app.js": "/static/app.js 1" });
});

test("a refused file leaves the kept page as it was", async () => {
  let status = 200;
  const worker = startWorker(async (path) => new Response(path, { status }));
  await worker.tell([]);
  status = 500;
  await worker.tell([]);
  assert.deepEqual(worker.kept("nexi-shell"), { "/": "/" });
});

test("an answer that breaks on its way leaves the kept one", async () => {
  let lost = false;
  const worker = startWorker(async () => (lost ? broken() : whole("the answer")));
  await worker.ask("/page/runs/0a1b2c");
  lost = true;
  assert.equal(await worker.ask("/page/runs/0a1b2c"), "the answer");
  assert.deepEqual(worker.kept("nexi-answers"), { "http://here/page/runs/0a1b2c": "the answer" });
});
