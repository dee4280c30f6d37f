import { createRoot } from "react-dom/client";
import { isKnown, login } from "./api/client";
import { onOtherTab } from "./api/login";
import { Socket } from "./api/socket";
import { App } from "./app";
import { SessionList } from "./state/list";
import "./styles/tokens.css";
import "./styles/base.css";

const usedTicket = await login().catch(() => false);
const socket = new Socket(`${location.origin.replace(/^http/, "ws")}/api/ws`);
const list = new SessionList(socket);
list.start();
if ((await isKnown()) === false) socket.refuse();
else socket.start();
onOtherTab((loggedIn) => {
  if (!loggedIn) socket.refuse();
  else if (socket.link === "refused") location.reload();
});
const root = document.getElementById("root");
if (root) createRoot(root).render(<App socket={socket} list={list} usedTicket={usedTicket} />);
