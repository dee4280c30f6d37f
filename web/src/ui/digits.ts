import { type RefObject, useEffect } from "react";

/** Presses the button of a digit in a card, while the focus is on the page or in the card. */
export function useDigits(card: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented) return;
      if (!/^[1-9]$/.test(event.key) || !card.current || !isFree(card.current)) return;
      const button = card.current.querySelector<HTMLButtonElement>(`button[data-digit="${event.key}"]`);
      if (!button || button.disabled) return;
      event.preventDefault();
      button.click();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [card]);
}

function isFree(card: HTMLElement): boolean {
  if (document.querySelector("dialog[open]")) return false;
  const { activeElement } = document;
  if (!activeElement || activeElement === document.body) return true;
  if (activeElement.matches("input, textarea, select")) return false;
  return card.contains(activeElement) || activeElement.matches("[data-row]");
}
