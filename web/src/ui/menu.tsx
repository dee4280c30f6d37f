import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import css from "./menu.module.css";

/** A button that shows a list of things to do. */
export function Menu({ label, icon, children }: { label: string; icon: ReactNode; children: ReactNode }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return;
    const items = () => [...(root.current?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];
    items()[0]?.focus();
    const outside = (event: PointerEvent) => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    const keys = (event: KeyboardEvent) => {
      const all = items();
      const at = all.indexOf(document.activeElement as HTMLElement);
      if (event.key === "Escape") {
        setOpen(false);
        button.current?.focus();
      } else if (event.key === "ArrowDown") all[(at + 1) % all.length]?.focus();
      else if (event.key === "ArrowUp") all[(at - 1 + all.length) % all.length]?.focus();
      else if (event.key === "Tab") return setOpen(false);
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("keydown", keys, true);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("keydown", keys, true);
    };
  }, [open]);
  return (
    <div className={css.root} ref={root}>
      <button
        ref={button}
        type="button"
        className={css.button}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
      >
        {icon}
      </button>
      {open && (
        // biome-ignore lint/a11y/useKeyWithClickEvents: keys act on the items themselves
        <div className={css.list} id={id} role="menu" aria-label={label} onClick={() => setOpen(false)}>
          {children}
        </div>
      )}
    </div>
  );
}

interface ItemProps {
  children: ReactNode;
  hint?: string;
  danger?: boolean;
  onSelect?(): void;
}

export function MenuItem({ children, hint, danger, onSelect }: ItemProps) {
  const className = danger ? `${css.item} ${css.danger}` : css.item;
  const words = (
    <>
      <span>{children}</span>
      {hint && <code className={css.hint}>{hint}</code>}
    </>
  );
  return (
    <button type="button" className={className} role="menuitem" onClick={onSelect} tabIndex={-1}>
      {words}
    </button>
  );
}
