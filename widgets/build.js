// Bundles each view of `src/entries` with all that it imports into one file of `agent_magics/static`,
// for anywidget loads a module from its text. The files are committed, so that nobody needs Node to
// see the views; by `digest.txt` a test without Node tells whether they are of these sources.
//
// Usage: node widgets/build.js [--check]   (--check writes nothing, and fails where a file is stale)

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

import { buildSync } from "esbuild";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BUILT = "agent_magics/static";
const DIGEST = "widgets/digest.txt";
const BANNER = "// Built from widgets/src by `make views`; change it there.";

/** List the files below a folder of the project. @param {string} folder */
const filesIn = (folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".js"))
    .map((name) => `${folder}/${name.replaceAll("\\", "/")}`);

/** Read a file of the project; "" where there is none. @param {string} path */
const textOf = (path) =>
  existsSync(join(ROOT, path)) ? readFileSync(join(ROOT, path), "utf8") : "";

/** Bundle every view; paths and texts of the files. @returns {Map<string, string>} */
function bundles() {
  const { outputFiles } = buildSync({
    absWorkingDir: ROOT,
    entryPoints: filesIn("widgets/src/entries"),
    outdir: BUILT,
    bundle: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    banner: { js: BANNER },
    write: false,
  });
  return new Map(outputFiles.map(({ path, text }) => [`${BUILT}/${basename(path)}`, text]));
}

/** Sum up sources and bundles; tests/widgets/test_bundles.py does the same. @param {Map<string, string>} built */
function digestOf(built) {
  const texts = new Map(filesIn("widgets/src").map((path) => [path, textOf(path)]));
  const sum = createHash("sha256");
  for (const [path, text] of [...texts, ...built].sort(([a], [b]) => (a < b ? -1 : 1))) {
    sum.update(`${path}\n${text}`);
  }
  return `${sum.digest("hex")}\n`;
}

const built = bundles();
const wanted = new Map([...built, [DIGEST, digestOf(built)]]);
mkdirSync(join(ROOT, BUILT), { recursive: true });
const superfluous = filesIn(BUILT).filter((path) => !built.has(path));
const stale = [...wanted].filter(([path, text]) => textOf(path) !== text).map(([path]) => path);

if (process.argv.includes("--check")) {
  for (const path of [...stale, ...superfluous]) {
    process.stderr.write(`${path} is not what \`make views\` builds.\n`);
  }
  process.exitCode = stale.length + superfluous.length > 0 ? 1 : 0;
} else {
  for (const path of superfluous) rmSync(join(ROOT, path));
  for (const path of stale) writeFileSync(join(ROOT, path), wanted.get(path) ?? "");
}
