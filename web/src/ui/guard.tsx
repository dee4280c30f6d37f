import { Component, type ReactNode } from "react";
import css from "./guard.module.css";

interface Props {
  /** When this is another one, it is tried again. */
  of: unknown;
  children: ReactNode;
}

/** What cannot be shown does not take the rest of the page with it. */
export class Guard extends Component<Props, { error: string | null; of: unknown }> {
  override state = { error: null, of: this.props.of };

  static getDerivedStateFromError(error: unknown) {
    return { error: String(error).slice(0, 300) };
  }

  static getDerivedStateFromProps({ of }: Props, state: { of: unknown }) {
    return of === state.of ? null : { error: null, of };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <p className={css.error} role="alert">
        This could not be shown ({this.state.error}). The session itself has it whole: export it to read on.
      </p>
    );
  }
}
