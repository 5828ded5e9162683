import assert from "node:assert/strict";
import { test } from "node:test";
import { panelAddress, parseAddress, runAddress } from "../../nexi/web/page/address.js";

test("an address names a panel, a run, an id that no run can have, or the start", () => {
  assert.deepEqual(["/history", "/knowledge", "/check", "/table", "/profile", "/setup", "/runs/0a1b2c", "/runs/0a1b2c/", "/runs/zzzzzz", "/runs/%3Cb%3E", "/runs/%", "/", "/other"].map(parseAddress), [
    { panel: "runs" }, { panel: "knowledge" }, { panel: "check" }, { panel: "table" }, { panel: "account" }, { panel: "setup" }, { run: "0a1b2c" }, { run: "0a1b2c" }, { missing: "zzzzzz" }, { missing: "<b>" }, { missing: "%" }, {}, {},
  ]);
});

test("a panel and a run have an address", () => {
  assert.deepEqual([panelAddress("runs"), panelAddress("setup"), runAddress("0a1b2c"), runAddress("")], ["/history", "/setup", "/runs/0a1b2c", "/"]);
});
