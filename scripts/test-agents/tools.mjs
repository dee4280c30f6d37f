// The same deed in the words of whichever agent asks: its tools are known by their names.
import path from "node:path";

export function call(step, tools, root) {
  const known = (...names) => names.find((name) => tools.has(name));
  const file = step.path && path.join(root, step.path);
  const patch = (lines) => `*** Begin Patch\n${lines.join("\n")}\n*** End Patch\n`;
  const signed = (sign, text) => text.replace(/\n$/, "").split("\n").map((line) => sign + line);
  switch (step.do) {
    case "run":
      return command(step, known);
    case "read":
      switch (known("Read", "read", "read_file")) {
        case "Read": return { name: "Read", input: { file_path: file } };
        case "read": return { name: "read", input: { filePath: file } };
        case "read_file": return { name: "read_file", input: { file_path: file } };
        default: return command({ command: `cat ${step.path}` }, known);
      }
    case "write":
      switch (known("Write", "write", "write_file")) {
        case "Write": return { name: "Write", input: { file_path: file, content: step.content } };
        case "write": return { name: "write", input: { filePath: file, content: step.content } };
        case "write_file": return { name: "write_file", input: { file_path: file, content: step.content } };
        default: return patched(patch([`*** Add File: ${step.path}`, ...signed("+", step.content)]), known);
      }
    case "edit":
      switch (known("Edit", "edit", "replace")) {
        case "Edit": return { name: "Edit", input: { file_path: file, old_string: step.old, new_string: step.new } };
        case "edit": return { name: "edit", input: { filePath: file, oldString: step.old, newString: step.new } };
        case "replace": {
          const input = { file_path: file, instruction: "Mend the word", old_string: step.old, new_string: step.new };
          return { name: "replace", input };
        }
        default: {
          const lines = [`*** Update File: ${step.path}`, "@@", ...signed("-", step.old), ...signed("+", step.new)];
          return patched(patch(lines), known);
        }
      }
    default:
      throw new Error(`no such deed: ${step.do}`);
  }
}

function patched(patch, known) {
  if (known("apply_patch")) return { name: "apply_patch", input: { input: patch } };
  return command({ command: `apply_patch <<'END'\n${patch}END` }, known);
}

function command({ command: line, asks }, known) {
  const description = "A small command";
  // Codex asks when a command is to leave its sandbox.
  const leave = asks ? { sandbox_permissions: "require_escalated", justification: "May it run?" } : {};
  const name = known("Bash", "bash", "run_shell_command", "exec_command", "shell_command");
  switch (name) {
    case "exec_command": return { name, input: { cmd: line, yield_time_ms: 20_000, ...leave } };
    case "shell_command": return { name, input: { command: line, ...leave } };
    case undefined: throw new Error("the agent runs no commands");
    default: return { name, input: { command: line, description } };
  }
}
