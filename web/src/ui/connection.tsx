import { useEffect, useState, useSyncExternalStore } from "react";
import type { Socket } from "../api/socket";
import css from "./connection.module.css";

/** A thin line at the top while the server cannot be heard, and a moment after. */
export function Connection({ socket }: { socket: Socket }) {
  const link = useSyncExternalStore(socket.subscribe, socket.getLink);
  const [cut, setCut] = useState(false);
  const [caught, setCaught] = useState(false);
  useEffect(() => {
    if (link === "cut") setCut(true);
    if (link !== "live" || !cut) return;
    setCut(false);
    setCaught(true);
    const timer = setTimeout(() => setCaught(false), 1500);
    return () => clearTimeout(timer);
  }, [link, cut]);
  const words = link === "cut" ? "Reconnecting…" : caught ? "Caught up" : "";
  return (
    <div className={words ? `${css.line} ${link === "cut" ? css.cut : css.caught}` : css.none} role="status">
      {words}
    </div>
  );
}
