// Pictures of the sources under an answer, fetched by the server alone; loaded when an answer has some.
import { $, element, withToken } from "./core.js";
import { outside, sourceOf } from "./sources.js";
import { state } from "./state.js";
import { say } from "./texts.js";

export function showPictures(run) {
  const list = $("picture-list");
  list.replaceChildren();
  $("pictures").hidden = !run.pictures?.length;
  $("pictures-go").hidden = Boolean(run.shows_pictures);
  $("pictures-go").onclick = () => { $("pictures-go").hidden = true; load(run); };
  if (run.shows_pictures) load(run);
}

async function load(run) {
  await Promise.all(run.pictures.map((one) => addPicture(run, one)));
  if (state.run === run && !$("picture-list").childElementCount) $("pictures").hidden = true;
}

// One that cannot be fetched or drawn is left out.
async function addPicture(run, { n, description, licence, host }) {
  const answer = await fetch(`/page/runs/${run.id}/picture?source=${n}`, { headers: withToken() }).catch(() => null);
  if (!answer?.ok || state.run !== run) return;
  const source = sourceOf(n, run), image = element("img", { src: URL.createObjectURL(await answer.blob()), alt: description || say("picture.of", { name: source?.title || host }), decoding: "async" });
  const about = element("figcaption", {}, `[${n}] `, outside(source.link, source.host), ` · ${licence || say("picture.unlicensed")}`);
  try { await image.decode(); } catch { return; } finally { URL.revokeObjectURL(image.src); }
  if (state.run === run) $("picture-list").append(element("li", {}, element("figure", {}, image, about)));
}
