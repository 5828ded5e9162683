// What a long answer gets besides its text: a table of contents, and buttons that copy a section, a table or code.
import { $, copyText, element } from "./core.js";
import { say } from "./texts.js";

const MIN_HEADINGS = 4, DONE_MS = 1500;

export function addContents(answer = $("answer")) {
  const heads = [...answer.querySelectorAll("h1, h2, h3")].filter((head) => !head.hidden);
  heads.forEach((head, i) => { head.id = `section-${i + 1}`; });
  $("toc-list").replaceChildren(...heads.map((head) => element("li", { className: `level-${head.tagName[1]}` }, element("a", { href: `#${head.id}`, textContent: plainText(head), dir: "auto" }))));
  $("toc").hidden = heads.length < MIN_HEADINGS;
  for (const head of heads) head.append(copyButton(say("copy.section", { name: plainText(head) }), () => sectionText(head)));
  for (const block of answer.querySelectorAll("pre, table")) {
    const isCode = block.tagName === "PRE", frame = element("div", { className: "framed" });
    block.replaceWith(frame);
    if (!isCode) import("./tables.js").then(({ makeSortable }) => makeSortable(block));
    frame.append(block, copyButton(say(isCode ? "copy.code" : "copy.table"), () => (isCode ? block.textContent : tableText(block))));
  }
}

// A heading and what stands below it, up to the next heading of its level.
function sectionText(head) {
  const parts = [plainText(head)];
  for (let next = head.nextElementSibling; next && !(/^H[1-6]$/.test(next.tagName) && next.tagName <= head.tagName); next = next.nextElementSibling) {
    const table = next.querySelector("table");
    parts.push(table ? tableText(table) : plainText(next));
  }
  return parts.join("\n\n");
}

function plainText(node) {
  const copy = node.cloneNode(true);
  for (const extra of copy.querySelectorAll(".copy, .check")) extra.remove();
  for (const item of copy.querySelectorAll("li")) item.append("\n");
  return copy.textContent.trim();
}

// Cells divided by tabs, as spreadsheets take them.
const tableText = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => plainText(cell).replace(/\s+/g, " ")).join("\t")).join("\n");

function copyButton(label, textOf) {
  const made = element("button", { type: "button", className: "copy quiet", textContent: say("copy.copy") });
  made.setAttribute("aria-label", label);
  made.addEventListener("click", async () => {
    try { await copyText(textOf()); made.textContent = say("copy.copied"); } catch { made.textContent = say("copy.failed"); }
    setTimeout(() => { made.textContent = say("copy.copy"); }, DONE_MS);
  });
  return made;
}
