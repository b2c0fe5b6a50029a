import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const BUILT = new URL("../../agent_magics/static/", import.meta.url);
const ENTRIES = new URL("../../widgets/src/entries/", import.meta.url);

test("each view is one file", () => {
  assert.deepEqual(readdirSync(BUILT), readdirSync(ENTRIES));
});

for (const name of readdirSync(BUILT)) {
  test(`${name} is a widget by its text alone, as anywidget loads it`, async () => {
    const text = readFileSync(new URL(name, BUILT), "utf8");
    assert.doesNotMatch(text, /^\s*import\b/m);
    const module = await import(
      `data:text/javascript;base64,${Buffer.from(text).toString("base64")}`
    );
    const widget = typeof module.default === "function" ? module.default() : module.default;
    assert.equal(typeof widget.initialize, "function");
  });
}
