//! How a piece of text looks: read from an agent's colours, written as our own.

use std::fmt::Write;

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// The terminal's own.
    #[default]
    Own,
    /// One of the sixteen that a terminal's theme decides, or of the 240 that are fixed.
    Index(u8),
    /// Red, green, blue.
    Exact(u8, u8, u8),
}

/// How a piece of text looks. What hides text (concealed, blinking) is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pen {
    pub ink: Colour,
    pub paper: Colour,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub strike: bool,
    pub inverse: bool,
}

/// Nothing special.
pub const PLAIN: Pen = Pen {
    ink: Colour::Own,
    paper: Colour::Own,
    bold: false,
    dim: false,
    italic: false,
    underline: false,
    strike: false,
    inverse: false,
};
pub const BOLD: Pen = Pen { bold: true, ..PLAIN };
pub const DIM: Pen = Pen { dim: true, ..PLAIN };
pub const RED: Pen = ink(1);
pub const GREEN: Pen = ink(2);
pub const YELLOW: Pen = ink(3);
pub const BLUE: Pen = ink(4);
pub const CYAN: Pen = ink(6);

const fn ink(n: u8) -> Pen {
    Pen { ink: Colour::Index(n), ..PLAIN }
}

impl Pen {
    /// The same, bold.
    pub const fn bold(self) -> Pen {
        Pen { bold: true, ..self }
    }

    /// Takes what stands between `ESC [` and `m`. What is not known is passed over.
    pub fn take(&mut self, params: &str) {
        // A colon joins the parts of one parameter: `38:2::1:2:3`, `4:3`.
        let mut rest = params.split(';');
        while let Some(param) = rest.next() {
            let mut parts = param.split(':');
            let code = number(parts.next().unwrap_or_default());
            if let Some(38 | 48) = code {
                let parts: Vec<&str> = parts.collect();
                let colour = if parts.is_empty() { far(&mut rest) } else { near(&parts) };
                if let Some(colour) = colour {
                    *(if code == Some(38) { &mut self.ink } else { &mut self.paper }) = colour;
                }
                continue;
            }
            let style = parts.next().and_then(number);
            if let Some(code) = code {
                self.set(code, style);
            }
        }
    }

    fn set(&mut self, code: u16, style: Option<u16>) {
        match code {
            0 => *self = PLAIN,
            1 => self.bold = true,
            2 => self.dim = true,
            3 => self.italic = true,
            4 => self.underline = style != Some(0),
            7 => self.inverse = true,
            9 => self.strike = true,
            21 => self.underline = true,
            22 => (self.bold, self.dim) = (false, false),
            23 => self.italic = false,
            24 => self.underline = false,
            27 => self.inverse = false,
            29 => self.strike = false,
            30..=37 => self.ink = Colour::Index((code - 30) as u8),
            39 => self.ink = Colour::Own,
            40..=47 => self.paper = Colour::Index((code - 40) as u8),
            49 => self.paper = Colour::Own,
            90..=97 => self.ink = Colour::Index((code - 90 + 8) as u8),
            100..=107 => self.paper = Colour::Index((code - 100 + 8) as u8),
            _ => {}
        }
    }

    /// The parameters of the sequence that turns this on, from nothing.
    pub fn params(&self) -> String {
        let mut out = String::new();
        let mut add = |code: &str| {
            if !out.is_empty() {
                out.push(';');
            }
            out.push_str(code);
        };
        let flags = [
            (self.bold, "1"),
            (self.dim, "2"),
            (self.italic, "3"),
            (self.underline, "4"),
            (self.inverse, "7"),
            (self.strike, "9"),
        ];
        flags.iter().filter(|(on, _)| *on).for_each(|(_, code)| add(code));
        for (colour, base) in [(self.ink, 30u16), (self.paper, 40)] {
            match colour {
                Colour::Own => {}
                Colour::Index(n @ 0..=7) => add(&(base + u16::from(n)).to_string()),
                Colour::Index(n @ 8..=15) => add(&(base + 52 + u16::from(n)).to_string()),
                Colour::Index(n) => add(&format!("{};5;{n}", base + 8)),
                Colour::Exact(r, g, b) => add(&format!("{};2;{r};{g};{b}", base + 8)),
            }
        }
        out
    }

    /// The names of the classes of this look, for a style sheet; exact colours are left out.
    pub fn classes(&self) -> String {
        let mut out = String::new();
        let flags = [
            (self.bold, "b"),
            (self.dim, "d"),
            (self.italic, "i"),
            (self.underline, "u"),
            (self.strike, "s"),
        ];
        for (_, name) in flags.iter().filter(|(on, _)| *on) {
            let _ = write!(out, " {name}");
        }
        // What is inverse needs two colours: those of the page, if there are none.
        let (ink, paper) =
            if self.inverse { (self.paper, self.ink) } else { (self.ink, self.paper) };
        for (colour, name) in [(ink, 'f'), (paper, 'g')] {
            match basic(colour) {
                Some(n) => drop(write!(out, " {name}{n}")),
                None if self.inverse && colour == Colour::Own => drop(write!(out, " {name}v")),
                None => {}
            }
        }
        out.trim_start().to_owned()
    }
}

/// The nearest of the sixteen colours: pages have a theme for those, in the dark and in the light.
fn basic(colour: Colour) -> Option<u8> {
    let (r, g, b) = match colour {
        Colour::Own => return None,
        Colour::Index(n @ 0..=15) => return Some(n),
        Colour::Index(n @ 16..=231) => {
            let (n, part) = (n - 16, |level: u8| if level == 0 { 0 } else { 55 + level * 40 });
            (part(n / 36), part(n / 6 % 6), part(n % 6))
        }
        Colour::Index(n) => (8 + (n - 232) * 10, 8 + (n - 232) * 10, 8 + (n - 232) * 10),
        Colour::Exact(r, g, b) => (r, g, b),
    };
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    if most - least < 32 {
        return Some(match most {
            0..=63 => 0,
            64..=159 => 8,
            160..=223 => 7,
            224.. => 15,
        });
    }
    let middle = least + (most - least) / 2;
    let hue = u8::from(r > middle) | u8::from(g > middle) << 1 | u8::from(b > middle) << 2;
    Some(if least > 64 { hue + 8 } else { hue })
}

/// The colour of `5;n` or `2;r;g;b` in the parameters that follow.
fn far<'a>(rest: &mut impl Iterator<Item = &'a str>) -> Option<Colour> {
    let mut next = || rest.next().and_then(number).and_then(|n| u8::try_from(n).ok());
    match next()? {
        5 => next().map(Colour::Index),
        2 => Some(Colour::Exact(next()?, next()?, next()?)),
        _ => None,
    }
}

/// The colour of `5:n`, `2:r:g:b` or `2::r:g:b`.
fn near(parts: &[&str]) -> Option<Colour> {
    let byte = |part: &str| number(part).and_then(|n| u8::try_from(n).ok());
    match parts {
        ["5", n] => byte(n).map(Colour::Index),
        ["2", r, g, b] | ["2", _, r, g, b] => Some(Colour::Exact(byte(r)?, byte(g)?, byte(b)?)),
        _ => None,
    }
}

/// A parameter; an empty one is 0.
fn number(text: &str) -> Option<u16> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pen(params: &str) -> Pen {
        let mut pen = PLAIN;
        pen.take(params);
        pen
    }

    #[test]
    fn reads_and_writes_colours() {
        for params in ["1;31", "2;3;4;9", "7;97;104", "38;5;208", "38;2;1;2;3;48;2;4;5;6", "31;42"]
        {
            assert_eq!(pen(params).params(), params);
        }
        assert_eq!(pen("38:2::1:2:3"), pen("38;2;1;2;3"));
        assert_eq!(pen("38:5:9"), pen("38;5;9"));
        assert_eq!(pen("4:3"), pen("4"));
        assert_eq!(pen("4:0"), PLAIN);
        assert_eq!(pen("1;31;0"), PLAIN);
        assert_eq!(pen("1;31;"), PLAIN);
        assert_eq!(pen(""), PLAIN);
    }

    #[test]
    fn passes_over_what_hides_text_and_what_is_broken() {
        for params in ["8", "5", "6", "28", "38", "38;5", "38;2;1", "38;5;999", "99999"] {
            assert_eq!(pen(params), PLAIN, "{params}");
        }
        assert_eq!(pen("31;8"), pen("31"));
    }

    #[test]
    fn names_classes() {
        assert_eq!(pen("1;31").classes(), "b f1");
        assert_eq!(pen("7").classes(), "fv gv");
        assert_eq!(pen("7;31").classes(), "fv g1");
        assert_eq!(pen("38;5;196").classes(), "f1");
        assert_eq!(pen("38;2;250;250;250").classes(), "f15");
        assert_eq!(pen("38;5;240").classes(), "f8");
    }
}
