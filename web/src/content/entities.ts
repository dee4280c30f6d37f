// Character references in markdown. A page that may not parse HTML has to know them itself: all of the
// Latin ones, and those that people write.

const latin =
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";
const greek =
  "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho  Sigma Tau Upsilon Phi Chi Psi Omega";
const others: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  ...{ ensp: "\u2002", emsp: "\u2003", thinsp: "\u2009", zwnj: "\u200c", zwj: "\u200d", lrm: "\u200e" },
  ...{ rlm: "\u200f", ndash: "–", mdash: "—", lsquo: "‘", rsquo: "’", sbquo: "‚", ldquo: "“", rdquo: "”" },
  ...{ bdquo: "„", dagger: "†", Dagger: "‡", bull: "•", hellip: "…", permil: "‰", prime: "′", Prime: "″" },
  ...{ lsaquo: "‹", rsaquo: "›", oline: "‾", frasl: "⁄", euro: "€", trade: "™", larr: "←", uarr: "↑" },
  ...{ rarr: "→", darr: "↓", harr: "↔", crarr: "↵", lArr: "⇐", uArr: "⇑", rArr: "⇒", dArr: "⇓", hArr: "⇔" },
  ...{ forall: "∀", part: "∂", exist: "∃", empty: "∅", nabla: "∇", isin: "∈", notin: "∉", ni: "∋" },
  ...{ prod: "∏", sum: "∑", minus: "−", lowast: "∗", radic: "√", prop: "∝", infin: "∞", ang: "∠" },
  ...{ and: "∧", or: "∨", cap: "∩", cup: "∪", int: "∫", there4: "∴", sim: "∼", cong: "≅", asymp: "≈" },
  ...{ ne: "≠", equiv: "≡", le: "≤", ge: "≥", sub: "⊂", sup: "⊃", nsub: "⊄", sube: "⊆", supe: "⊇" },
  ...{ oplus: "⊕", otimes: "⊗", perp: "⊥", sdot: "⋅", loz: "◊", spades: "♠", clubs: "♣", hearts: "♥" },
  ...{ diams: "♦", check: "✓", cross: "✗", star: "☆", starf: "★", OElig: "Œ", oelig: "œ", Scaron: "Š" },
  ...{ scaron: "š", Yuml: "Ÿ", fnof: "ƒ", circ: "ˆ", tilde: "˜", sigmaf: "ς", Tab: "\t", NewLine: "\n" },
  ...{ lbrace: "{", rbrace: "}", lbrack: "[", rbrack: "]", lpar: "(", rpar: ")", colon: ":", comma: "," },
  ...{ period: ".", sol: "/", bsol: "\\", vert: "|", num: "#", excl: "!", quest: "?", ast: "*", lowbar: "_" },
  ...{ grave: "`", dollar: "$", percnt: "%", plus: "+", equals: "=", semi: ";", commat: "@", Hat: "^" },
};

let known: Map<string, string> | undefined;

function names(): Map<string, string> {
  if (known) return known;
  known = new Map(Object.entries(others));
  for (const [n, name] of latin.split(" ").entries()) known.set(name, String.fromCharCode(0xa0 + n));
  for (const [n, name] of greek.split(" ").entries()) {
    if (!name) continue;
    known.set(name, String.fromCharCode(0x391 + n));
    known.set(name.toLowerCase(), String.fromCharCode(0x3b1 + n));
  }
  return known;
}

function numbered(code: number): string {
  const none = !(code > 0) || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff);
  return none ? "\ufffd" : String.fromCodePoint(code);
}

/** Text with its character references resolved; what is not known stays as it is. */
export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([A-Za-z]\w{1,31}));/g,
    (all, dec, hex, name) => {
      if (dec) return numbered(Number.parseInt(dec, 10));
      if (hex) return numbered(Number.parseInt(hex, 16));
      return names().get(name) ?? all;
    },
  );
}
