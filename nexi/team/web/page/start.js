// What a team server adds to the page when it opens: the account, and a notice of an administrator who had access to it.
import { $, element } from "../core.js";
import { formatDate, say } from "../texts.js";
import { describeAccess, firstUnseen, readAccess } from "./access.js";
import { loadTexts } from "./texts.js";

export async function startTeam() {
  $("show-account").hidden = false;
  const [access] = await Promise.all([readAccess(), loadTexts()]), newest = firstUnseen(access);
  if (!newest) return;
  $("ask").before(element("p", { id: "access-notice", className: "hint", role: "status" },
    `${describeAccess(newest)} (${formatDate(newest.at)}) `, element("a", { href: "/profile", textContent: say("account.see") })));
}
