import { useEffect, useState } from "react";
import { api } from "../api/client";
import type { Socket } from "../api/socket";
import type { AgentInfo } from "../api/types";

/** What whoever reads may do here. */
export interface Leave {
  /** Agents that can be started; none when the server or the token does not allow it. */
  agents: readonly AgentInfo[] | null;
  run: boolean;
  approve: boolean;
}

const NONE: Leave = { agents: null, run: false, approve: false };

async function read(): Promise<Leave> {
  const [list, me] = await Promise.all([api.agents(), api.me()]);
  const run = list.allowRun && me.scopes.includes("run");
  return { agents: run ? list.agents : null, run, approve: list.allowRun && me.scopes.includes("approve") };
}

/** Asked when the server is there, and again when it was away: it may be started anew with other leave. */
export function useLeave(socket: Socket): Leave {
  const [leave, setLeave] = useState(NONE);
  useEffect(() => {
    let stale = false;
    const ask = () => {
      if (socket.link !== "live") return;
      read().then(
        (now) => stale || setLeave(now),
        () => {},
      );
    };
    ask();
    const unlisten = socket.subscribe(ask);
    return () => {
      stale = true;
      unlisten();
    };
  }, [socket]);
  return leave;
}
