/** What was said last time. Without leave to keep it, a browser throws. */
export function recall(name: string): string | null {
  try {
    return localStorage.getItem(`narrows.${name}`);
  } catch {
    return null;
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`narrows.${name}`, value);
  } catch {
    // Then it is asked again.
  }
}
