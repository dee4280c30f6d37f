import { createRoot } from "react-dom/client";
import { login } from "./api/client";
import { Socket } from "./api/socket";
import { App } from "./app";
import { SessionList } from "./state/list";
import "./styles/tokens.css";
import "./styles/base.css";

const usedTicket = await login().catch(() => false);
const socket = new Socket(`${location.origin.replace(/^http/, "ws")}/api/ws`);
const list = new SessionList(socket);
list.start();
const me = await fetch("/api/me").catch(() => null);
if (me?.status === 401) socket.refuse();
else socket.start();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App socket={socket} list={list} usedTicket={usedTicket} />);
