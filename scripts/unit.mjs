// Runs the tests of the workspace, several programs at a time: most of them wait more than they compute.
// What fails is shown whole, and again by name at the end. `make unit TESTS="socket follow"` runs only these.

import { spawn } from "node:child_process";
import { dirname } from "node:path";
import { createInterface } from "node:readline";

const AT_ONCE = 3;
const cargo = process.env.CARGO || "cargo";
const only = (process.env.TESTS || "").split(/\s+/).filter(Boolean);
// Their programs take longest: they begin first.
const LONG = ["cuts", "run", "machine", "repair", "library", "source", "cluster", "damage", "export"];

/** Builds all test programs; returns where each is and in which folder it runs. */
function build() {
  const args = ["test", "--workspace", "--locked", "--no-run", "--message-format=json-render-diagnostics", "--quiet"];
  const child = spawn(cargo, args, { stdio: ["ignore", "pipe", "inherit"] });
  const programs = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    const said = JSON.parse(line);
    if (said.reason === "compiler-artifact" && said.profile.test && said.executable) {
      const { name, kind } = said.target;
      programs.push({ name, kind: kind[0], path: said.executable, folder: dirname(said.manifest_path) });
    }
  });
  return new Promise((resolve) => child.on("close", (code) => (code === 0 ? resolve(programs) : process.exit(code ?? 1))));
}

/** Runs a program to its end; returns its exit code and what it printed. */
function run(command, args, options) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  const parts = [];
  child.stdout.on("data", (part) => parts.push(part));
  child.stderr.on("data", (part) => parts.push(part));
  return new Promise((resolve) => {
    child.on("error", (error) => resolve({ code: error.message, text: "" }));
    child.on("close", (code, signal) => resolve({ code: code ?? signal, text: Buffer.concat(parts).toString() }));
  });
}

const rank = ({ name }) => (LONG.includes(name) ? LONG.indexOf(name) : LONG.length);
const programs = (await build()).filter(({ name }) => only.length === 0 || only.includes(name));
programs.sort((a, b) => rank(a) - rank(b));
if (programs.length === 0) {
  console.error(`no test program is called ${only.join(" or ")}`);
  process.exit(1);
}

const failed = [];
let passed = 0;

async function work() {
  for (let next = programs.shift(); next; next = programs.shift()) {
    const { name, kind, path, folder } = next;
    const label = `${folder.split("/").pop()} ${kind === "lib" || kind === "bin" ? `${kind} ` : ""}${name}`;
    const began = performance.now();
    const { code, text } = await run(path, ["--quiet"], { cwd: folder, env: { ...process.env, CARGO_MANIFEST_DIR: folder } });
    const count = Number(/test result: ok\. (\d+) passed/.exec(text)?.[1] ?? 0);
    passed += count;
    if (code === 0) {
      if (count > 0) console.log(`ok    ${label}: ${count} in ${((performance.now() - began) / 1000).toFixed(1)} s`);
    } else {
      failed.push(`${label} (${code})`);
      console.log(`${text}\nFAIL  ${label}`);
    }
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, work));
if (only.length === 0) {
  const { code, text } = await run(cargo, ["test", "--workspace", "--locked", "--quiet", "--doc"], {});
  if (code !== 0) {
    failed.push(`examples in the documentation (${code})`);
    console.log(text);
  }
}
console.log(`${passed} tests passed${failed.length > 0 ? `, failed: ${failed.join(", ")}` : ""}`);
process.exit(failed.length > 0 ? 1 : 0);
