import { useEffect, useState } from "react";
import { picture } from "../api/client";

interface Props {
  /** Where the picture is. An `img` cannot say who asks, so it is fetched and shown from memory. */
  src: string;
  alt: string;
  onError?(): void;
}

export function Picture({ src, alt, onError }: Props) {
  const [shown, setShown] = useState<string>();
  const fetched = src.startsWith("/api/");
  // biome-ignore lint/correctness/useExhaustiveDependencies: who is told of an error changes nothing
  useEffect(() => {
    if (!fetched) return;
    const leave = new AbortController();
    let url: string | undefined;
    picture(src, leave.signal).then(
      (bytes) => {
        if (leave.signal.aborted) return;
        url = URL.createObjectURL(bytes);
        setShown(url);
      },
      () => leave.signal.aborted || onError?.(),
    );
    return () => {
      leave.abort();
      setShown(undefined);
      if (url) URL.revokeObjectURL(url);
    };
  }, [src, fetched]);
  return <img src={fetched ? shown : src} alt={alt} decoding="async" onError={onError} />;
}
