// The verdict on an answer, above it: one line that opens the list of its sentences, each of which leads to its evidence.
import { $, element } from "./core.js";
import { verdict } from "./sources.js";
import { state } from "./state.js";
import { say, tell } from "./texts.js";

const LINE_SIGNS = { doubted: "!", supported: "✓", found: "○" };
const GOOD = ["supported", "found"], BAD = ["contradicted", "not_found", "retracted", "concern"];
const count = (claims, name) => claims.filter((claim) => claim.verdict === name).length;

// The one line that an answer states about itself.
function describeProof({ checked: n, supported, found } = {}) {
  if (!n) return "";
  if (!supported) return found ? say("figures.found", { k: found, n }) : say("verdict.not_confirmed");
  return [say("figures.supported", { k: supported, n }), found ? say("figures.more", { k: found }) : ""].filter(Boolean).join(", ");
}

// The line of a run, whether a judge or the rules doubt something, and the sentences that were checked.
export function describeRun(run) {
  const claims = run.claims.filter((claim) => claim.checked), sources = run.sources.filter((source) => !(source.work < source.n)).length, points = run.conflicts.length;
  const bad = BAD.map((name) => [name, count(claims, name) || run.proof?.[name]]).filter(([, k]) => k).map(([name, k]) => say("source.worst", { k, verdict: say(`verdict.${name}`) }));
  const proof = bad.length && !claims.some((claim) => GOOD.includes(claim.verdict)) ? "" : describeProof(run.proof);
  const parts = [[proof, ...bad].filter(Boolean).join(", "), sources ? say("count.sources", { n: sources }) : "", points ? say("figures.disagree", { n: points }) : ""];
  const kind = bad.length ? "doubted" : claims.every((claim) => claim.verdict === "supported") ? "supported" : "found";
  return { claims, kind, line: `${LINE_SIGNS[kind]} ${parts.filter(Boolean).join(" · ")}` };
}

export function showVerdict(run, openEvidence) {
  const { claims, kind, line } = describeRun(run);
  $("verdict").hidden = !claims.length;
  if (!claims.length) return;
  drawLine(line, kind);
  const rows = run.claims.flatMap((claim, index) => (claim.checked ? [sentenceRow(claim, index, openEvidence)] : []));
  const gap = run.gap ? [tell(element("p", { className: "site" }), run.gap)] : [];
  $("verdict-list").replaceChildren(element("ol", {}, ...rows), ...gap, ...explainMarks([...new Set(claims.map((claim) => claim.verdict))], run));
  $("figures").disabled = false;
  $("figures").onclick = () => openList($("verdict-list").hidden);
}

// While the answer is written its place is kept, so that nothing moves when the verdict comes.
export function showChecking() {
  if (state.run || !$("verdict").hidden) return;
  $("verdict").hidden = false;
  $("figures").disabled = true;
  drawLine(say("figures.checking"), "found");
}

function drawLine(text, kind) {
  $("figures").textContent = text;
  $("figures").className = `is-${kind}`;
  openList(false);
}

function openList(isOpen) {
  $("verdict-list").hidden = !isOpen;
  $("figures").setAttribute("aria-expanded", String(isOpen));
}

function sentenceRow(claim, index, openEvidence) {
  const row = element("button", { type: "button", className: "quiet", dir: "auto", onclick: () => openEvidence(index, 0) }, verdict(claim), " ", claim.text);
  return element("li", { className: GOOD.includes(claim.verdict) && !claim.standing ? "" : "doubted" }, row);
}

// What marks mean and how often they are right, for those who want to know.
export function explainMarks(verdicts, run) {
  const texts = verdicts.filter((name) => run.marks?.[name]);
  if (!texts.length) return [];
  const rows = texts.flatMap((name) => [element("dt", {}, verdict({ verdict: name }, say(`verdict.${name}`))), tell(element("dd"), run.marks[name])]);
  const mark = element("summary", { textContent: "?", title: say("verdict.why") });
  mark.setAttribute("aria-label", say("verdict.why"));
  return [element("details", { className: "meaning" }, mark, element("dl", {}, ...rows))];
}
