import { ChevronLeft, ChevronRight, X, ZoomIn, ZoomOut } from "lucide-react";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import styles from "./images.module.css";
import { Picture } from "./picture";

export interface ZoomProps {
  src: string;
  words: string;
  several: boolean;
  onStep(by: number): void;
  onClose(): void;
}

/** A picture over the whole page: fitted to it, or as large as it is. */
export function Zoom({ src, words, several, onStep, onClose }: ZoomProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [actual, setActual] = useState(false);
  useEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
    return () => element?.close();
  }, []);
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "+" || event.key === "=") setActual(true);
    else if (event.key === "-") setActual(false);
    else if (several && event.key === "ArrowRight") onStep(1);
    else if (several && event.key === "ArrowLeft") onStep(-1);
    else return;
    // The page behind has keys of its own.
    event.stopPropagation();
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      className={styles.zoom}
      aria-label={words}
      onClose={onClose}
      onKeyDown={onKey}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div className={styles.frame}>
        <div className={styles.bar}>
          <span className={styles.words}>{words}</span>
          {several && <Tool words="Previous image" icon={ChevronLeft} onClick={() => onStep(-1)} />}
          {several && <Tool words="Next image" icon={ChevronRight} onClick={() => onStep(1)} />}
          <Tool
            words={actual ? "Fit to the page" : "Actual size"}
            icon={actual ? ZoomOut : ZoomIn}
            onClick={() => setActual(!actual)}
          />
          <Tool words="Close" icon={X} onClick={onClose} />
        </div>
        <div className={styles.stage}>
          <button
            type="button"
            className={styles.picture}
            aria-pressed={actual}
            aria-label="Actual size"
            onClick={() => setActual(!actual)}
          >
            <Picture src={src} alt={words} />
          </button>
        </div>
      </div>
    </dialog>
  );
}

function Tool({ words, icon: Icon, onClick }: { words: string; icon: typeof X; onClick(): void }) {
  return (
    <button type="button" className={styles.tool} aria-label={words} title={words} onClick={onClick}>
      <Icon size={16} aria-hidden />
    </button>
  );
}
