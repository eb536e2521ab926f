// Builds the page into src/lakelet/dashboard/static (or the folder given): npm run build
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "..", "src", "lakelet", "dashboard", "static");
mkdirSync(out, { recursive: true });

// By it a test sees without Node whether the build is that of the sources.
const digest = createHash("sha256");
const sources = [
  ...readdirSync(join(here, "src")).map((name) => join("src", name)),
  "build.mjs",
  "package.json",
].sort();
for (const name of sources)
  digest
    .update(`${name.replaceAll("\\", "/")}\0`)
    .update(readFileSync(join(here, name)))
    .update("\0");
const sum = digest.digest("hex");

await build({
  entryPoints: [join(here, "src", "main.ts")],
  outfile: join(out, "page.js"),
  bundle: true,
  minify: true,
  target: "es2020",
  format: "iife",
  charset: "utf8",
  legalComments: "none",
  banner: { js: `/* sources ${sum}; licences in LICENSES.txt */`, css: `/* sources ${sum} */` },
});
for (const name of ["index.html", "icon.svg"]) copyFileSync(join(here, "src", name), join(out, name));

const { dependencies } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
const aboutOf = (name) => JSON.parse(readFileSync(join(here, "node_modules", name, "package.json"), "utf8"));
const used = [
  ...new Set(Object.keys(dependencies).flatMap((name) => [name, ...Object.keys(aboutOf(name).dependencies ?? {})])),
];
const licences = used.sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const about = aboutOf(name);
  const text = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  return `${name} ${about.version} (${about.license})\n\n${readFileSync(join(folder, text), "utf8").trim()}\n`;
});
writeFileSync(
  join(out, "LICENSES.txt"),
  `Libraries that page.js and page.css contain.\n\n${licences.join("\n----------\n\n")}`,
);
