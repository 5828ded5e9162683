// A citation under the pointer, or with the focus, shows the passage behind it; pressing it opens the evidence.
import { $, element } from "./core.js";
import { sourceOf } from "./sources.js";
import { runOf } from "./state.js";
import { say } from "./texts.js";

const EDGE_PX = 8;

function quotesOf(cite) {
  const found = runOf(cite)?.claims[Number(cite.dataset.claim)], number = Number(cite.dataset.n);
  return found ? found.evidence.filter((one) => one.n === number && one.quote).map((one) => one.quote) : [];
}

function showPeek(cite) {
  const source = sourceOf(Number(cite.dataset.n), runOf(cite));
  if (!source) return;
  const quotes = cite.dataset.claim ? quotesOf(cite) : [];
  const box = $("peek"), about = [source.host, source.published].filter(Boolean).join(" · ");
  box.replaceChildren(
    element("p", { className: "head", textContent: source.title || source.url, dir: "auto" }), element("p", { className: "site", textContent: about, dir: "auto" }),
    ...(quotes.length ? quotes.map((quote) => element("blockquote", { textContent: quote, dir: "auto" })) : cite.dataset.claim ? [element("p", { textContent: say("peek.none") })] : []),
  );
  box.hidden = false;
  cite.setAttribute("aria-describedby", "peek");
  const at = cite.getBoundingClientRect(), size = box.getBoundingClientRect();
  const isAbove = at.bottom + size.height + EDGE_PX > innerHeight && at.top > size.height + EDGE_PX;
  box.style.left = `${Math.max(EDGE_PX, Math.min(at.left, innerWidth - size.width - EDGE_PX))}px`;
  box.style.top = `${isAbove ? at.top - size.height - EDGE_PX : at.bottom + EDGE_PX}px`;
}

export function hidePeek() {
  $("peek").hidden = true;
  for (const cite of document.querySelectorAll("[aria-describedby=peek]")) cite.removeAttribute("aria-describedby");
}

export function watchCitations() {
  const citeOf = (event) => event.target.closest?.(":is(#answer, .turn-answer) .cite");
  const canHover = matchMedia("(hover: hover)").matches;
  for (const [shows, hides] of [...(canHover ? [["mouseover", "mouseout"]] : []), ["focusin", "focusout"]]) {
    document.addEventListener(shows, (event) => { const cite = citeOf(event); if (cite && (shows === "mouseover" || cite.matches(":focus-visible"))) showPeek(cite); });
    document.addEventListener(hides, (event) => { if (citeOf(event)) hidePeek(); });
  }
  document.addEventListener("click", hidePeek);
  document.addEventListener("scroll", hidePeek, { passive: true });
}
