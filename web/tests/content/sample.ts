/** A bit of everything that agents write. */
export const sample = `# Fixing the login test

I looked at **three** files and found *one* cause; ~~not two~~. See [the docs](https://react.dev/learn) or
https://example.com/a?b=1&c=2, and \`a < b && c\` in \`src/auth/session.ts\`.

Setext heading
--------------

1. First step
2. Second step
   with a lazy line
   - nested *item*
   - another

     a paragraph in it

     \`\`\`ts
     const x: number = 1;
     \`\`\`
3. Third

- [ ] open task
- [x] done **task**

Paragraph before a table
| name | size | note |
|:-----|-----:|:----:|
| a.ts | 12   | \`x|y\` |
| b.ts | 3    | **bold** |

> A quote with a list:
> - one
> - two
lazy end

> [!WARNING]
> Do not &lt;run&gt; this &copy; twice.

\`\`\`rust
fn main() {
    println!("**not bold**");
}
\`\`\`

    indented code
    <b>too</b>

<details><summary>Raw</summary>

text with <b>html</b> in it

</details>

***

Line with two spaces  
broken, and a backslash\\
too. An ![image *alt*](https://img.example/x.png) and \\*escaped\\* stars, a [ref][r] and a [^1].

[r]: https://ref.example/page "title"

* star list

* loose list

1) other numbers
2) go on

Last words with **unclosed bold and \`code
`;
