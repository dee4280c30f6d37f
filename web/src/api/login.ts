import { recall, remember } from "../state/remember";

const NAME = "login";

/**
 * The key of this browser. It lies in the storage of this origin, which no other port of the host can read,
 * and goes out in a header that the page itself sets. A cookie would go to every server on this host.
 */
let held: string | null = null;

function key(): string | null {
  // Another tab may have logged in or out meanwhile.
  const kept = recall(NAME);
  return kept ?? held;
}

/** The header that says who asks. */
export function credentials(): Record<string, string> {
  const mine = key();
  return mine ? { authorization: `Bearer ${mine}` } : {};
}

export function keepLogin(token: string): void {
  // Without leave to keep anything, it lasts as long as this tab.
  remember(NAME, token);
  held = recall(NAME) === token ? null : token;
}

export function forgetLogin(): void {
  held = null;
  try {
    localStorage.removeItem(`narrows.${NAME}`);
  } catch {
    // Nothing was kept.
  }
}

/** Tells when another tab has logged in (true) or out. */
export function onOtherTab(tell: (loggedIn: boolean) => void): void {
  window.addEventListener("storage", (event) => {
    if (event.key === `narrows.${NAME}` || event.key === null) tell(recall(NAME) !== null);
  });
}
