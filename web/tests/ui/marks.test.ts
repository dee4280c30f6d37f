import { expect, test } from "vitest";
import { rangesOf, termsOf } from "../../src/ui/marks";

function page(html: string): HTMLElement {
  const root = document.createElement("div");
  root.innerHTML = html;
  document.body.replaceChildren(root);
  return root;
}
const found = (html: string, query: string, most?: number) =>
  rangesOf(page(html), termsOf(query), most).map((range) => range.toString());

test("words and phrases, as the server reads them", () => {
  expect(termsOf('One "two  three" four"')).toEqual(["one", "two  three", "four"]);
  expect(termsOf('  "" ')).toEqual([]);
});

test("in any case, also within words, one after the other", () => {
  expect(found("<p>Port, PORTS and sport</p>", "port")).toEqual(["Port", "PORT", "port"]);
  expect(found("<p>aaaa</p>", "aa")).toEqual(["aa", "aa"]);
  expect(found("<p>全文検索の索引</p>", "検索")).toEqual(["検索"]);
});

test("across the elements of a line, not from one line to the next", () => {
  expect(found("<pre><i>const</i> <b>po</b>rt</pre>", '"const port"')).toEqual(["const port"]);
  expect(found("<p>po</p><p>rt</p>", "port")).toEqual([]);
  expect(found("<ul><li>po</li><li>rt</li></ul>", "port")).toEqual([]);
});

test("letters that are longer when they are small keep their place", () => {
  expect(found("<p>İİ port</p>", "port")).toEqual(["port"]);
});

test("not more than somebody can see", () => {
  expect(found(`<p>${"a ".repeat(50)}</p>`, "a", 3)).toEqual(["a", "a", "a"]);
});
