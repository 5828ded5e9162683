// Files that are dropped, pasted or picked become known: each is sent once, cut into passages, and found by what is asked next.
import { $, call, element, plural, state } from "./core.js";

const BIG = 16000000;
let turn = Promise.resolve();

export function takeFiles(list) {
  for (const file of list) {
    const about = element("span", { textContent: "waiting" }), chip = element("li", {}, element("b", { textContent: file.name, dir: "auto" }), about);
    $("files").append(chip);
    $("files").hidden = false;
    turn = turn.then(() => takeOne(file, chip, about));
  }
}

async function takeOne(file, chip, about) {
  const tell = (text, kind) => { about.textContent = text; chip.className = kind; $("taken").textContent = `${file.name}: ${text}`; };
  const most = state.form?.most_file || BIG;
  if (file.size > most) return tell(`larger than ${Math.floor(most / 1e6)} MB`, "failed");
  tell("reading", "");
  try {
    const taken = await call(`/page/files?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
    const words = taken.outcome === "stored" ? `known: ${plural(taken.chunks, "passage")}` : "known already";
    tell([words, ...taken.warnings].join(". "), "done");
  } catch (error) { tell(error.message, "failed"); }
}

const holdsFiles = (event) => [...(event.dataTransfer?.types || [])].includes("Files");

export function watchForFiles() {
  let inside = 0;
  const shown = (yes) => document.body.classList.toggle("dropping", yes);
  document.addEventListener("dragenter", (event) => { if (holdsFiles(event)) { inside++; shown(true); } });
  document.addEventListener("dragleave", (event) => { if (holdsFiles(event) && --inside <= 0) { inside = 0; shown(false); } });
  document.addEventListener("dragover", (event) => { if (holdsFiles(event)) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    inside = 0;
    shown(false);
    takeFiles(event.dataTransfer.files);
  });
  $("question").addEventListener("paste", (event) => { if (event.clipboardData?.files.length) { event.preventDefault(); takeFiles(event.clipboardData.files); } });
  $("attach").addEventListener("click", () => $("picker").click());
  $("picker").addEventListener("change", () => { takeFiles($("picker").files); $("picker").value = ""; });
}
