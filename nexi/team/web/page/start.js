// What a team server adds to the page when it opens: the account, and a notice of an administrator who had access to it.
import { $, element } from "../core.js";
import { formatDate, say } from "../texts.js";
import { describeAccess, listUnseen, readAccess } from "./access.js";
import { loadTexts } from "./texts.js";

const MAX_SHOWN = 3;

export async function startTeam() {
  $("show-account").hidden = false;
  const [access] = await Promise.all([readAccess(), loadTexts()]), unseen = listUnseen(access).slice(0, MAX_SHOWN);
  if (!unseen.length) return;
  $("ask").before(element("p", { id: "access-notice", className: "hint", role: "status" },
    ...unseen.map((one) => element("span", { textContent: `${describeAccess(one)} (${formatDate(one.at)}) ` })), element("a", { href: "/profile", textContent: say("account.see") })));
}
