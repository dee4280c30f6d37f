import { useEffect, useRef, useState } from "react";

/** A value that changes many times a second, taken up once in a while: each time costs something. */
export function useSlow<T>(value: T, slow: boolean, ms = 2000): T {
  const [kept, setKept] = useState(value);
  const latest = useRef(value);
  useEffect(() => {
    latest.current = value;
  }, [value]);
  useEffect(() => {
    if (!slow) return;
    setKept(latest.current);
    const timer = setInterval(() => setKept(latest.current), ms);
    return () => clearInterval(timer);
  }, [slow, ms]);
  return slow ? kept : value;
}
