/** The command that goes on with a session in the agent's own program, where one is known. */
export function resumeCommand(agent?: string | null, id?: string | null): string | null {
  // The id goes into a shell: anything but a plain word is not offered.
  if (!agent || !id || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id)) return null;
  const name = agent.toLowerCase();
  if (name.includes("claude")) return `claude --resume ${id}`;
  if (name.includes("opencode")) return `opencode --session ${id}`;
  if (name.includes("codex")) return `codex resume ${id}`;
  if (name.includes("gemini")) return `gemini --resume ${id}`;
  return null;
}
