// A page in memory for modules that touch one: elements by id with the few members that they use, and a server that is a function.
import { readFileSync } from "node:fs";

export class FakeElement {
  constructor(tag = "div") { Object.assign(this, { tag, textContent: "", value: "", hidden: false, className: "", attributes: {}, childNodes: [], dataset: {} }); }
  get children() { return this.childNodes; }
  get childElementCount() { return this.childNodes.length; }
  get firstChild() { return this.childNodes[0]; }
  get firstElementChild() { return this.childNodes[0] ?? null; }
  get lastChild() { return this.childNodes.at(-1); }
  get classList() {
    const names = () => this.className.split(" ").filter(Boolean);
    const toggle = (name, on) => { this.className = [...names().filter((each) => each !== name), ...(on ? [name] : [])].join(" "); };
    return { contains: (name) => names().includes(name), toggle, add: (name) => toggle(name, true), remove: (name) => toggle(name, false) };
  }
  append(...nodes) { for (const node of nodes) { if (node instanceof FakeElement) node.parentElement = this; this.childNodes.push(node); } }
  appendChild(node) { this.append(node); return node; }
  replaceChildren(...nodes) { this.childNodes = []; this.append(...nodes); }
  remove() { this.parentElement.childNodes = this.parentElement.childNodes.filter((node) => node !== this); }
  setAttribute(name, value) { this.attributes[name] = value; }
  focus() { document.activeElement = this; }
  isEqualNode(other) { return this.tag === other.tag && this.textContent === other.textContent; }
}

const english = JSON.parse(readFileSync(new URL("../../nexi/web/page/texts/en.json", import.meta.url), "utf8"));

// With the English texts, as the server puts them into the page; those of a script alone where a test gives them.
export function fakePage({ lang = "en", texts = english.scripts } = {}) {
  const elements = new Map([["texts", Object.assign(new FakeElement("script"), { textContent: JSON.stringify(texts) })]]);
  const byId = (id) => { if (!elements.has(id)) elements.set(id, new FakeElement()); return elements.get(id); };
  globalThis.document = {
    body: new FakeElement("body"), activeElement: null, getElementById: byId, createElement: (tag) => new FakeElement(tag),
    documentElement: { lang }, addEventListener() {}, dispatchEvent() {},
  };
  globalThis.requestAnimationFrame = (act) => setTimeout(act);
  globalThis.sessionStorage = { getItem: () => "" };
  return byId;
}

// All that a node says, part by part.
export const wordsOf = (node) => (node instanceof FakeElement ? [node.textContent, ...node.childNodes.flatMap(wordsOf)].filter(Boolean) : [String(node)]);

export const paragraph = (text) => Object.assign(new FakeElement("p"), { textContent: text });

export const jsonReply = (data, status = 200) => new Response(JSON.stringify(data), { status, headers: { "content-type": "application/json" } });

// Timers that fire when a test says so; `pass` also lets every promise that is ready go on.
export function fakeTimers() {
  let now = 0, count = 0;
  const timers = new Map();
  const start = (act, ms, every) => { timers.set(++count, { act, at: now + ms, every }); return count; };
  globalThis.setTimeout = (act, ms = 0) => start(act, ms, 0);
  globalThis.setInterval = (act, ms) => start(act, ms, ms);
  globalThis.clearTimeout = globalThis.clearInterval = (id) => void timers.delete(id);
  const tick = (ms) => {
    for (const until = now + ms; ;) {
      const due = [...timers].filter(([, timer]) => timer.at <= until).sort((a, b) => a[1].at - b[1].at || a[0] - b[0])[0];
      if (!due) return void (now = until);
      const [id, timer] = due;
      now = timer.at;
      if (timer.every) timer.at += timer.every; else timers.delete(id);
      timer.act();
    }
  };
  const settle = async () => { for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve)); };
  return { tick, pass: async (ms) => { tick(ms); await settle(); } };
}
