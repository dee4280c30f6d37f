import type { LanguageRegistration } from "shiki/core";

/** A grammar, and those it builds on. */
export type Grammar = { default: LanguageRegistration[] };

// One file each, loaded when something in that language is first shown.
const grammars: Record<string, () => Promise<Grammar>> = {
  bash: () => import("shiki/langs/shellscript.mjs"),
  c: () => import("shiki/langs/c.mjs"),
  cpp: () => import("shiki/langs/cpp.mjs"),
  csharp: () => import("shiki/langs/csharp.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  dart: () => import("shiki/langs/dart.mjs"),
  diff: () => import("shiki/langs/diff.mjs"),
  docker: () => import("shiki/langs/docker.mjs"),
  elixir: () => import("shiki/langs/elixir.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  graphql: () => import("shiki/langs/graphql.mjs"),
  haskell: () => import("shiki/langs/haskell.mjs"),
  hcl: () => import("shiki/langs/hcl.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  ini: () => import("shiki/langs/ini.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  javascript: () => import("shiki/langs/javascript.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  jsonc: () => import("shiki/langs/jsonc.mjs"),
  jsx: () => import("shiki/langs/jsx.mjs"),
  kotlin: () => import("shiki/langs/kotlin.mjs"),
  lua: () => import("shiki/langs/lua.mjs"),
  make: () => import("shiki/langs/make.mjs"),
  markdown: () => import("shiki/langs/markdown.mjs"),
  nix: () => import("shiki/langs/nix.mjs"),
  perl: () => import("shiki/langs/perl.mjs"),
  php: () => import("shiki/langs/php.mjs"),
  powershell: () => import("shiki/langs/powershell.mjs"),
  proto: () => import("shiki/langs/proto.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  r: () => import("shiki/langs/r.mjs"),
  ruby: () => import("shiki/langs/ruby.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  scala: () => import("shiki/langs/scala.mjs"),
  scss: () => import("shiki/langs/scss.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  svelte: () => import("shiki/langs/svelte.mjs"),
  swift: () => import("shiki/langs/swift.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  typescript: () => import("shiki/langs/typescript.mjs"),
  vue: () => import("shiki/langs/vue.mjs"),
  xml: () => import("shiki/langs/xml.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
  zig: () => import("shiki/langs/zig.mjs"),
};

/** Other names, and endings of files. */
const names: Record<string, string> = {
  ...{
    sh: "bash",
    shell: "bash",
    zsh: "bash",
    shellscript: "bash",
    console: "bash",
    ksh: "bash",
    fish: "bash",
  },
  ...{
    h: "c",
    cc: "cpp",
    cxx: "cpp",
    "c++": "cpp",
    hpp: "cpp",
    hh: "cpp",
    hxx: "cpp",
    ino: "cpp",
    cu: "cpp",
  },
  ...{
    cs: "csharp",
    "c#": "csharp",
    csx: "csharp",
    patch: "diff",
    dockerfile: "docker",
    containerfile: "docker",
  },
  ...{
    ex: "elixir",
    exs: "elixir",
    golang: "go",
    gql: "graphql",
    hs: "haskell",
    tf: "hcl",
    terraform: "hcl",
  },
  ...{
    htm: "html",
    xhtml: "html",
    cfg: "ini",
    conf: "ini",
    env: "ini",
    properties: "ini",
    editorconfig: "ini",
  },
  ...{ js: "javascript", mjs: "javascript", cjs: "javascript", node: "javascript", json5: "jsonc" },
  ...{ jsonl: "json", ndjson: "json", webmanifest: "json", geojson: "json", kt: "kotlin", kts: "kotlin" },
  ...{
    mk: "make",
    makefile: "make",
    md: "markdown",
    mdx: "markdown",
    mdc: "markdown",
    pl: "perl",
    pm: "perl",
  },
  ...{ ps1: "powershell", pwsh: "powershell", psm1: "powershell", protobuf: "proto", py: "python" },
  ...{
    pyi: "python",
    python3: "python",
    pyw: "python",
    rb: "ruby",
    gemspec: "ruby",
    rake: "ruby",
    rs: "rust",
  },
  ...{ sc: "scala", sbt: "scala", sass: "scss", less: "css", psql: "sql", postgres: "sql", mysql: "sql" },
  ...{ sqlite: "sql", ts: "typescript", mts: "typescript", cts: "typescript", lock: "toml", svg: "xml" },
  ...{ xsd: "xml", xsl: "xml", plist: "xml", csproj: "xml", yml: "yaml", gemfile: "ruby", rakefile: "ruby" },
  ...{ bashrc: "bash", zshrc: "bash", profile: "bash", bats: "bash", justfile: "make", gitconfig: "ini" },
};

/** Files whose names say it. */
const files: Record<string, string> = {
  "package-lock.json": "json",
  "tsconfig.json": "jsonc",
  "yarn.lock": "yaml",
  "pnpm-lock.yaml": "yaml",
  "cmakelists.txt": "make",
  "go.mod": "go",
};

function known(name: string): string | null {
  const lower = name.toLowerCase();
  if (Object.hasOwn(grammars, lower)) return lower;
  return Object.hasOwn(names, lower) ? names[lower]! : null;
}

function byPath(path: string): string | null {
  const file = path.split(/[\\/]/).at(-1)!.toLowerCase();
  if (Object.hasOwn(files, file)) return files[file]!;
  const dot = file.lastIndexOf(".");
  const whole = known(file.replace(/^\./, ""));
  if (dot < 0) return whole;
  // Dockerfile.dev, .env.local
  return known(file.slice(dot + 1)) ?? whole ?? known(file.replace(/^\./, "").split(".")[0]!);
}

/** The language of a code block by what is written at its fence, or of a file by its name. */
export function languageOf(lang?: string | null, path?: string | null): string | null {
  const word = lang?.trim().split(/[\s,{]/, 1)[0];
  if (word) {
    const found = known(word.replace(/^\.|^language-/, "")) ?? (word.includes(".") ? byPath(word) : null);
    if (found) return found;
  }
  return path ? byPath(path) : null;
}

export function loadGrammar(language: string): Promise<Grammar> {
  const load = grammars[language];
  return load ? load() : Promise.reject(new Error(`no grammar for ${language}`));
}
