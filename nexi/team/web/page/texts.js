// The texts of a team's parts of the page, which come with the first of them.
import { call } from "../core.js";
import { addTexts } from "../texts.js";

let loading = null;

export const loadTexts = () => (loading ??= call("/static/team/texts").then(addTexts));
