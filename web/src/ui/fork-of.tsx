import { useEffect, useState } from "react";
import { api } from "../api/client";
import type { Session } from "../api/types";
import { visible } from "../content/visible";
import { titleOf } from "../items/labels";
import { address } from "../state/route";
import css from "./fork.module.css";
import { follow } from "./session-row";

/** Of which session another one is a fork, with a link to it. */
export function ForkOf({ of }: { of: string }) {
  const [trunk, setTrunk] = useState<Session>();
  const [gone, setGone] = useState(false);
  useEffect(() => {
    let left = false;
    api.session(of).then(
      (found) => left || setTrunk(found),
      () => left || setGone(true),
    );
    return () => {
      left = true;
    };
  }, [of]);
  if (gone) return <span className={css.of}>fork of another session</span>;
  const name = trunk?.id === of ? visible(titleOf(trunk).slice(0, 200)) : "another session";
  return (
    <span className={css.of}>
      fork of{" "}
      <a href={address(of)} title={name} onClick={(event) => follow(event, address(of), () => {})}>
        {name}
      </a>
    </span>
  );
}
