// The answer under way: its text is made HTML by the server and put in piece by piece, so that what is being read stays as it is.
import { $, call, element } from "./core.js";
import { translateMarks } from "./sources.js";
import { state } from "./state.js";

const RENDER_MS = 150, RETRY_MS = 500, WHOLE_CHARS = 8000, MAX_CHARS = 390000;
let rendering = 0, isUnshown = false;

export function renderSoon() { rendering ||= setTimeout(render, RENDER_MS); }

async function render() {
  const text = state.text, known = state.marks.length, id = state.id;
  try {
    isUnshown = true;
    if (isShowable(text, state.stale)) await show(text, id);
    isUnshown = false;
  } catch { await new Promise((resolve) => setTimeout(resolve, RETRY_MS)); } // what stands there stays until the server is back
  rendering = 0;
  if ((state.text !== text || state.marks.length !== known || isUnshown) && state.source) renderSoon();
}

// What a resumed run sends again takes the place of what is shown once there is as much of it.
export const isShowable = (text, stale) => text.length >= stale.length && text.length < MAX_CHARS;

async function show(text, id) {
  const target = $("answer"), shown = Number(target.dataset.cut || 0), cut = text.length > WHOLE_CHARS ? settledLength(text) : 0;
  if (cut !== shown) {
    const before = await toHtml(text, shown, cut);
    if (id !== state.id || !state.source) return;
    const part = element("div", { innerHTML: before, className: "settled" }); // made safe by the server
    translateMarks(part);
    for (const old of [...target.children].filter((one) => !isSettled(one))) old.remove();
    target.append(part);
    target.dataset.cut = cut;
  }
  const rest = await toHtml(text, cut, text.length);
  if (id !== state.id || !state.source) return;
  const template = element("template", { innerHTML: rest }); // made safe by the server
  translateMarks(template.content);
  patchNodes(target, [...template.content.childNodes]);
}

async function toHtml(text, from, to) {
  const part = { text: text.slice(from, to), marks: marksBetween(state.marks, text, from, to) };
  return (await call("/page/render", { method: "POST", body: JSON.stringify(part) })).html;
}

const countCharacters = (text) => [...text].length;

// The marks of one part of a text, with their places in that part.
export function marksBetween(marks, text, from, to) {
  if (!marks.length) return [];
  const before = countCharacters(text.slice(0, from)), after = before + countCharacters(text.slice(from, to));
  return marks.filter(({ start, end }) => start >= before && end <= after)
    .map(({ start, end, verdict }) => ({ start: start - before, end: end - before, verdict }));
}
const isSettled = (node) => Boolean(node.classList?.contains("settled"));

// How much of a text nothing can change any more: all before its last heading that stands outside a fence.
export function settledLength(text) {
  const cut = text.lastIndexOf("\n\n#");
  return cut > 0 && (text.slice(0, cut).match(/^```/gm) || []).length % 2 === 0 ? cut + 2 : 0;
}

// Only nodes after the first difference are replaced, so that what is being read or selected stays as it is.
export function patchNodes(target, next) {
  const kept = [...target.childNodes].filter((one) => !isSettled(one));
  let same = 0;
  while (same < next.length && same < kept.length && next[same].isEqualNode(kept[same])) same++;
  for (const old of kept.slice(same)) old.remove();
  target.append(...next.slice(same));
}
