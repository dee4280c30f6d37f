import styles from "./skeleton.module.css";

/** The shape of a text that is on its way. Shows only when it takes a while. */
export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div className={styles.skeleton} role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, at) => (
        <span key={at} className={styles.line} />
      ))}
    </div>
  );
}
