import { isValidElement, type ReactNode } from "react";
import styles from "./link.module.css";
import { visible } from "./visible";

export type Address =
  | { safe: true; href: string; where: string }
  /** Not to be followed, and why if that is worth a word. */
  | { safe: false; shown: string; why?: string };

/** What may be followed: http, https and mailto, without a password in it. */
export function readAddress(href: string): Address {
  const shown = visible(href.trim());
  let url: URL;
  try {
    url = new URL(href);
  } catch {
    return { safe: false, shown };
  }
  if (url.protocol === "mailto:") {
    return { safe: true, href: url.href, where: visible(safeDecode(url.pathname)) };
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return { safe: false, shown };
  // What stands before an @ is read as the host by people, and is not.
  if (url.username || url.password) return { safe: false, shown, why: "address with a user name" };
  return { safe: true, href: url.href, where: url.host };
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The letters of what React would show. */
export function textOf(node: ReactNode): string {
  if (typeof node === "string" || typeof node === "number") return String(node);
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (isValidElement<{ children?: ReactNode }>(node)) return textOf(node.props.children);
  return "";
}

function bare(text: string): string {
  return text
    .trim()
    .replace(/^mailto:/i, "")
    .replace(/\/$/, "");
}

/** Whether the label already says where the link goes. */
function saysItself(label: string, address: { href: string; where: string }): boolean {
  const said = bare(label);
  const goes = bare(address.href);
  return said === goes || said === goes.replace(/^https?:\/\//i, "") || said === address.where;
}

export interface SafeLinkProps {
  href: string;
  children?: ReactNode;
}

/** A link to somewhere else that an agent wrote: where it goes stands beside its label. */
export function SafeLink({ href, children }: SafeLinkProps) {
  const address = readAddress(href);
  const label = textOf(children);
  if (!address.safe) {
    const told = !label || bare(label) === bare(href) || !address.shown;
    return (
      <span>
        {label ? children : address.shown}
        {!told && <span className={styles.where}> ({address.shown})</span>}
        {address.why && <span className={styles.where}> (not a link: {address.why})</span>}
      </span>
    );
  }
  return (
    <>
      <a
        className={styles.link}
        href={address.href}
        target="_blank"
        rel="noopener noreferrer nofollow"
        title={address.href}
      >
        {label ? children : address.href}
      </a>
      {label && !saysItself(label, address) && (
        <span className={styles.where}>
          {"\u00a0"}
          {address.where}
        </span>
      )}
    </>
  );
}
