// Which administrators had access to this account, and whether this browser has shown it.
import { call } from "../core.js";
import { say } from "../texts.js";

const SEEN = "nexi-access-seen";

export const readAccess = async () => (await call("/account/access")).access;
export const describeAccess = ({ action, by, address }) => say(`account.${action}`, { by, address });
export const markSeen = ([newest]) => { if (newest) localStorage.setItem(SEEN, newest.at); };
export const listUnseen = (access) => { const seen = access.findIndex(({ at }) => at === localStorage.getItem(SEEN)); return seen < 0 ? access : access.slice(0, seen); };
