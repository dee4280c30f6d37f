import { useCallback, useRef, useState } from "react";
import type { Image } from "../api/types";
import { useSession } from "../state/context";
import styles from "./images.module.css";
import { Picture } from "./picture";
import { Zoom } from "./zoom";

export interface ImagesProps {
  images: readonly Image[];
}

export function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [n, unit] = bytes < 1_000_000 ? [bytes / 1000, "kB"] : [bytes / 1_000_000, "MB"];
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${unit}`;
}

/** Small pictures, one of them large after a click. */
export function Images({ images }: ImagesProps) {
  const { blob } = useSession();
  const [zoomed, setZoomed] = useState<number>();
  const buttons = useRef<(HTMLButtonElement | null)[]>([]);
  const close = useCallback(() => {
    setZoomed((n) => {
      if (n !== undefined) buttons.current[n]?.focus();
      return undefined;
    });
  }, []);
  if (images.length === 0) return null;
  const words = (image: Image, n: number) => {
    const which = images.length > 1 ? `Image ${n + 1} of ${images.length}` : "Image";
    return `${which}, ${image.mimeType.replace(/^image\//, "")}, ${sizeOf(image.size)}`;
  };
  const shown = zoomed === undefined ? undefined : images[zoomed];
  return (
    <div className={styles.images}>
      {images.map((image, n) => (
        <Thumbnail
          key={n}
          src={blob(image.blob)}
          words={words(image, n)}
          size={sizeOf(image.size)}
          button={(element) => {
            buttons.current[n] = element;
          }}
          onOpen={() => setZoomed(n)}
        />
      ))}
      {shown && zoomed !== undefined && (
        <Zoom
          src={blob(shown.blob)}
          words={words(shown, zoomed)}
          onClose={close}
          onStep={(by) => setZoomed((zoomed + by + images.length) % images.length)}
          several={images.length > 1}
        />
      )}
    </div>
  );
}

interface ThumbnailProps {
  src: string;
  words: string;
  size: string;
  button(element: HTMLButtonElement | null): void;
  onOpen(): void;
}

function Thumbnail({ src, words, size, button, onOpen }: ThumbnailProps) {
  const [broken, setBroken] = useState(false);
  if (broken) return <p className={styles.broken}>{words}: cannot be shown</p>;
  return (
    <button type="button" className={styles.thumbnail} ref={button} title="Show larger" onClick={onOpen}>
      <Picture src={src} alt={words} onError={() => setBroken(true)} />
      <span className={styles.size} aria-hidden>
        {size}
      </span>
    </button>
  );
}
