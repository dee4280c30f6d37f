import type { CSSProperties } from "react";
import { type Colour, type Style, styleKey } from "./ansi";

/** The 16 colours on the dark of a terminal, all of them readable there. */
const palette = [
  ...["#8b919b", "#ff7b7b", "#6fce8b", "#e2b860", "#7ab0ff", "#d596ee", "#5cc8d2", "#dfe1e5"],
  ...["#a3a9b3", "#ff9d9d", "#93e0a9", "#f2d08a", "#a3c8ff", "#e6b5f7", "#8adde5", "#ffffff"],
];
/** As backgrounds they are what they are called. */
const grounds = [
  ...["#2c2f34", "#a8323a", "#2a7a46", "#8f6a1a", "#2c5fae", "#83429e", "#1d7681", "#c9ccd1"],
  ...["#565a62", "#d4525a", "#3f9d60", "#b58a35", "#4d82d6", "#a864c4", "#379aa6", "#f2f3f5"],
];
const text = "#dfe1e5";
const ground = "#17191c";

function parts(colour: string): [number, number, number] {
  const n = Number.parseInt(colour.slice(1), 16);
  return [(n >> 16) & 255, (n >> 8) & 255, n & 255];
}

function luminance(colour: string): number {
  const [r, g, b] = parts(colour).map((part) => {
    const s = part / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** The colour, moved towards white or black as far as it takes to be read on that ground. */
export function readable(colour: string, on: string): string {
  const goal = contrast("#000000", on) > contrast("#ffffff", on) ? 0 : 255;
  let now = parts(colour);
  let shown = colour;
  for (let n = 0; n < 20 && contrast(shown, on) < 4.5; n++) {
    now = now.map((part) => Math.round(part + (goal - part) * 0.2)) as [number, number, number];
    shown = `#${now.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
  }
  return shown;
}

export interface Look {
  /** Of the classes of a terminal. */
  names: string[];
  style?: CSSProperties;
}

const looks = new Map<string, Look>();

function front(colour: Colour | undefined): string {
  return colour === undefined ? text : typeof colour === "number" ? palette[colour]! : colour;
}

function back(colour: Colour | undefined): string {
  return colour === undefined ? ground : typeof colour === "number" ? grounds[colour]! : colour;
}

function look(style: Style): Look {
  const names: string[] = [];
  for (const name of ["bold", "dim", "italic", "underline", "strike", "hidden"] as const) {
    if (style[name]) names.push(name);
  }
  if (style.inverse) {
    const on = style.fg === undefined ? text : front(style.fg);
    const color = readable(style.bg === undefined ? ground : back(style.bg), on);
    return { names, style: { color, backgroundColor: on } };
  }
  if (style.bg !== undefined) {
    const on = back(style.bg);
    return {
      names,
      style: { color: readable(front(style.fg), on), backgroundColor: on },
    };
  }
  if (typeof style.fg === "number") names.push(`c${style.fg}`);
  const color = typeof style.fg === "string" ? readable(style.fg, ground) : undefined;
  return { names, style: color ? { color } : undefined };
}

/** Names of classes and colours for a style. */
export function lookOf(style: Style): Look {
  const key = styleKey(style);
  let found = looks.get(key);
  if (!found) {
    // Programs that draw pictures use thousands of colours.
    if (looks.size > 4000) looks.clear();
    found = look(style);
    looks.set(key, found);
  }
  return found;
}
