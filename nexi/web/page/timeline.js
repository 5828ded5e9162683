// The timeline: a bar for every model call, search and page, as SVG.
import { $, state } from "./core.js";

let drawing = 0;
export function drawSoon() { if (!drawing) drawing = requestAnimationFrame(() => { drawing = 0; draw(); }); }

export function draw() {
  const bars = state.bars.slice(-2000), width = 800, row = 14, left = 110;
  if (!bars.length) return;
  const lanes = [...new Set(bars.map((b) => `${b.who} ${b.lane}`.trim()))], end = Math.max(...bars.map((b) => b.end), 0.1);
  const scale = (width - left - 10) / end, ns = "http://www.w3.org/2000/svg";
  const make = (tag, attributes, text) => { const made = document.createElementNS(ns, tag); for (const [k, v] of Object.entries(attributes)) made.setAttribute(k, v); if (text) made.textContent = text; return made; };
  const svg = make("svg", { viewBox: `0 0 ${width} ${lanes.length * row + 18}` });
  lanes.forEach((lane, i) => svg.append(make("text", { x: 0, y: i * row + 11 }, lane)));
  for (const b of bars) {
    const i = lanes.indexOf(`${b.who} ${b.lane}`.trim());
    const rect = make("rect", { x: left + b.start * scale, y: i * row + 2, width: Math.max(1.5, (b.end - b.start) * scale), height: row - 4, rx: 2, class: b.failed ? "lane-failed" : `lane-${b.lane}` });
    rect.append(make("title", {}, `${b.label} (${(b.end - b.start).toFixed(2)} s)`));
    svg.append(rect);
  }
  svg.append(make("text", { x: left, y: lanes.length * row + 14 }, "0 s"), make("text", { x: width - 50, y: lanes.length * row + 14 }, `${end.toFixed(1)} s`));
  $("timeline").replaceChildren(svg);
  $("timing").hidden = false;
}
