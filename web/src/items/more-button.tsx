import styles from "./more-button.module.css";

/** Shows the rest of something, or folds it again. */
export function MoreButton({ open, label, onToggle }: { open: boolean; label: string; onToggle(): void }) {
  return (
    <button type="button" className={styles.more} aria-expanded={open} onClick={onToggle}>
      {open ? "Show less" : label}
    </button>
  );
}
