// What the model says, by the name of the script: one step an answer, the next one after each call.

export const HELLO = "Grüße aus dem Modell: a **plain** answer, in pieces 🧩.";
/// Longer than any test takes.
export const LONG = 611;

const say = (text) => ({ text });
const run = (command, more) => ({ do: "run", command, ...more });

export function steps(script, before) {
  switch (script) {
    case "text":
      return [say(HELLO)];
    case "edits":
      return [
        { do: "read", path: "notes.md" },
        { do: "edit", path: "notes.md", old: "teh first line", new: "the first line" },
        { do: "write", path: "made.txt", content: "made by an agent\n" },
        say("Both files are as they should be."),
      ];
    case "run":
      return [run("echo from-the-command; echo to-the-side >&2"), say("The command has run.")];
    case "allow":
      return [run("echo yes > allowed.txt && echo it-was-allowed", { asks: true }), say("It was allowed.")];
    case "reject":
      return [run("echo no > refused.txt && echo it-was-not", { asks: true }), say("It was refused.")];
    case "long":
      return [run(`echo it-begins; sleep ${LONG}; echo it-ends`, { asks: true }), say("This is never said.")];
    case "after":
      return [say("Still here after that.")];
    // What it knows of the conversation: nothing, when the agent has forgotten it.
    case "recall":
      return [say(`Before this came: ${before.join(" ") || "nothing"}.`)];
    default:
      return [say("There is no such script.")];
  }
}
