// Files that are dropped, pasted or picked are indexed: each is sent once, cut into passages, and searched by the next questions.
import { $, call, element } from "./core.js";
import { state } from "./state.js";
import { say } from "./texts.js";

const MAX_BYTES = 16000000;
let previous = Promise.resolve();

export function uploadFiles(list) {
  for (const file of list) {
    const about = element("span", { textContent: say("files.waiting") }), chip = element("li", {}, element("b", { textContent: file.name, dir: "auto" }), about);
    $("files").append(chip);
    $("files").hidden = false;
    previous = previous.then(() => uploadOne(file, chip, about));
  }
}

async function uploadOne(file, chip, about) {
  const setProgress = (text, kind) => { about.textContent = text; chip.className = kind; $("taken").textContent = `${file.name}: ${text}`; };
  const max = state.form?.most_file || MAX_BYTES;
  if (file.size > max) return setProgress(say("files.too_large", { n: Math.floor(max / 1e6) }), "failed");
  setProgress(say("files.reading"), "");
  try {
    const taken = await call(`/page/files?name=${encodeURIComponent(file.name)}${state.space ? `&space=${encodeURIComponent(state.space)}` : ""}`, { method: "POST", body: file });
    const words = taken.outcome === "stored" ? say("files.indexed", { n: taken.chunks }) : say("files.known");
    setProgress([words, ...taken.warnings].join(". "), "done");
  } catch (error) { setProgress(error.message, "failed"); }
}

const holdsFiles = (event) => [...(event.dataTransfer?.types || [])].includes("Files");

export function watchForFiles() {
  let inside = 0;
  const showDropZone = (yes) => document.body.classList.toggle("dropping", yes);
  document.addEventListener("dragenter", (event) => { if (holdsFiles(event)) { inside++; showDropZone(true); } });
  document.addEventListener("dragleave", (event) => { if (holdsFiles(event) && --inside <= 0) { inside = 0; showDropZone(false); } });
  document.addEventListener("dragover", (event) => { if (holdsFiles(event)) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    inside = 0;
    showDropZone(false);
    uploadFiles(event.dataTransfer.files);
  });
  $("question").addEventListener("paste", (event) => { if (event.clipboardData?.files.length) { event.preventDefault(); uploadFiles(event.clipboardData.files); } });
  $("attach").addEventListener("click", () => $("picker").click());
  $("picker").addEventListener("change", () => { uploadFiles($("picker").files); $("picker").value = ""; });
}
