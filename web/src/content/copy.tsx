import { Check, Copy } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import styles from "./copy.module.css";

export interface CopyButtonProps {
  text: string | (() => string | Promise<string>);
  label?: string;
}

/** Puts text on the clipboard; also where the browser has no clipboard for pages without TLS. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const box = document.createElement("textarea");
  box.value = text;
  box.className = "hidden-visually";
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  if (!done) throw new Error("no clipboard");
}

export function CopyButton({ text, label = "Copy" }: CopyButtonProps) {
  const [said, setSaid] = useState("");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    let words = "Copied";
    try {
      await copyText(typeof text === "string" ? text : await text());
    } catch {
      words = "Could not copy";
    }
    setSaid(words);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setSaid(""), 1600);
  };
  const done = said === "Copied";
  return (
    <span className={styles.wrap}>
      <button type="button" className={styles.button} aria-label={label} title={said || label} onClick={copy}>
        {done ? <Check size={14} aria-hidden className={styles.done} /> : <Copy size={14} aria-hidden />}
      </button>
      <span role="status" className={said ? styles.said : "hidden-visually"}>
        {said}
      </span>
    </span>
  );
}
