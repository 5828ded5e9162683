// The timeline: a lane for the run and for every researcher; in it a bar for every model call, search and page, as SVG.
// Bars too close to be told apart are drawn as one, so that ten thousand cost what a few hundred do.
import { $ } from "./core.js";
import { addBar, setBars, state } from "./state.js";
import { formatNumber, say } from "./texts.js";

const MAX_BARS = 3000, MAX_DRAWN = 1500, MAX_LANES = 40, MERGED_BARS = 500, ROW = 26, TRACK = 6, LEFT = 30, PAUSE_MS = 300, MAX_SHARE = .05, DEFAULT_WIDTH = 340;
const TRACKS = { model: 0, search: 1, page: 2 };
let waiting = 0, drawn = 0, took = 0, width = 0;

export function drawBar(bar) {
  addBar(bar);
  if (state.bars.length > MAX_BARS) setBars(mergeBars(state.bars, endOf(state.bars) / MERGED_BARS));
  drawSoon();
}

// A drawing that takes long is made less often, so that it never takes more than its share of the time.
export function drawSoon() {
  if (waiting) return;
  waiting = setTimeout(() => requestAnimationFrame(() => { waiting = 0; draw(); }), Math.max(0, Math.max(PAUSE_MS, took / MAX_SHARE) - (performance.now() - drawn)));
}

// The width is told by the browser after its layout: to ask for it while drawing would make it lay the page out at once.
export function watchWidth() {
  new ResizeObserver(([{ contentRect }]) => { if (contentRect.width !== width) { width = contentRect.width; drawSoon(); } }).observe($("timeline"));
}

const endOf = (bars) => bars.reduce((most, bar) => Math.max(most, bar.end), 0.1);

// Neighbours of one lane and one kind that lie closer than the gap become one bar, which counts them.
export function mergeBars(bars, gap) {
  const open = new Map(), made = [];
  for (const bar of [...bars].sort((a, b) => a.start - b.start)) {
    const key = `${bar.who}|${bar.lane}|${bar.failed}|${bar.open}`, last = open.get(key);
    if (last && bar.start - last.end <= gap) {
      last.end = Math.max(last.end, bar.end);
      last.count = (last.count || 1) + (bar.count || 1);
    } else {
      const copy = { ...bar };
      open.set(key, copy);
      made.push(copy);
    }
  }
  return made;
}

function svgElement(tag, attributes, text) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  if (text) one.textContent = text;
  return one;
}

const formatTime = (seconds, digits) => say("spent.seconds", { s: formatNumber(seconds, digits) });

// Seconds since the run began, as this browser counts them.
export const elapsed = () => (performance.now() - state.started) / 1000;

export function draw() {
  drawn = performance.now();
  if ($("cost").open) drawTimeline();
  took = performance.now() - drawn;
}

function drawTimeline() {
  const open = state.source ? [...state.open.values()].map((bar) => ({ ...bar, end: Math.max(bar.start, elapsed()), open: true })) : [];
  if (!state.bars.length && !open.length) return;
  $("timing").hidden = false;
  const across = Math.max(220, width || DEFAULT_WIDTH), end = Math.max(endOf(state.bars), state.source ? elapsed() : 0), scale = (across - LEFT - 4) / end;
  let bars = [...mergeBars(state.bars, 1 / scale), ...open];
  for (let px = 2; bars.length > MAX_DRAWN; px *= 2) bars = mergeBars(bars, px / scale);
  const lanes = [...new Set(bars.map((bar) => bar.who))].sort((a, b) => a.localeCompare(b, "en", { numeric: true })).slice(0, MAX_LANES);
  const height = lanes.length * ROW + 18, svg = svgElement("svg", { viewBox: `0 0 ${across} ${height}` });
  lanes.forEach((who, i) => {
    svg.append(svgElement("rect", { x: LEFT, y: i * ROW, width: across - LEFT, height: ROW - 2, rx: 3, class: "lane" }));
    svg.append(svgElement("text", { x: 0, y: i * ROW + 16 }, who || say("timeline.run")));
  });
  for (const bar of bars) if (lanes.includes(bar.who)) svg.append(rect(bar, lanes.indexOf(bar.who), scale));
  svg.append(svgElement("text", { x: LEFT, y: height - 4 }, formatTime(0, 0)), svgElement("text", { x: across - 2, y: height - 4, "text-anchor": "end" }, formatTime(end, 1)));
  $("timeline").replaceChildren(svg);
  $("timeline").setAttribute("aria-label", say("timeline.label", { bars: summarise(state.bars), seconds: formatNumber(end, 1) }));
}

function rect(bar, lane, scale) {
  const y = lane * ROW + 2 + (TRACKS[bar.lane] ?? 0) * (TRACK + 1);
  const one = svgElement("rect", {
    x: (LEFT + bar.start * scale).toFixed(1), y, width: Math.max(2, (bar.end - bar.start) * scale).toFixed(1), height: TRACK, rx: 1.5,
    class: `${bar.failed ? "lane-failed" : `lane-${bar.lane}`}${bar.open ? " lane-open" : ""}`,
  });
  const words = bar.count > 1 ? say("timeline.many", { n: bar.count, lane: say(`lane.${bar.lane}`) }) : bar.label;
  one.append(svgElement("title", {}, `${words} (${formatTime(bar.end - bar.start, 2)})`));
  return one;
}

export function summarise(bars) {
  const count = {};
  for (const bar of bars) count[bar.lane] = (count[bar.lane] || 0) + (bar.count || 1);
  return Object.entries(count).map(([lane, many]) => say({ model: "lane.models", search: "count.searches" }[lane] || "count.pages", { n: many })).join(", ");
}
