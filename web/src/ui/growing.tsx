import type { ComponentProps } from "react";
import css from "./growing.module.css";

/** A text field that grows with what is written: an unseen copy of the text makes its height. */
export function Growing({ value, ...more }: ComponentProps<"textarea"> & { value: string }) {
  return (
    <div className={css.growing}>
      <div className={css.copy} aria-hidden>
        {`${value}\n`}
      </div>
      <textarea {...more} value={value} rows={1} />
    </div>
  );
}
