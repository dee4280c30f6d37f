//! Text styles: parsed from SGR sequences of agents, written as our own sequences or CSS classes.

use std::fmt::Write;

// Former name, until its uses in other crates are renamed.
pub use self::TextStyle as Pen;

/// A color of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Color {
    /// The default color of the terminal.
    #[default]
    Default,
    /// An index into the 256-color palette; the terminal's theme decides the first 16.
    Indexed(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

/// A text style. Attributes that hide text (concealed, blinking) are not represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextStyle {
    /// The foreground color.
    pub fg: Color,
    /// The background color.
    pub bg: Color,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub strikethrough: bool,
    pub inverse: bool,
}

/// No style.
pub const PLAIN: TextStyle = TextStyle {
    fg: Color::Default,
    bg: Color::Default,
    bold: false,
    dim: false,
    italic: false,
    underline: false,
    strikethrough: false,
    inverse: false,
};
/// Bold text.
pub const BOLD: TextStyle = TextStyle { bold: true, ..PLAIN };
/// Dim text.
pub const DIM: TextStyle = TextStyle { dim: true, ..PLAIN };
/// Red text.
pub const RED: TextStyle = indexed(1);
/// Green text.
pub const GREEN: TextStyle = indexed(2);
/// Yellow text.
pub const YELLOW: TextStyle = indexed(3);
/// Blue text.
pub const BLUE: TextStyle = indexed(4);
/// Cyan text.
pub const CYAN: TextStyle = indexed(6);

const fn indexed(n: u8) -> TextStyle {
    TextStyle { fg: Color::Indexed(n), ..PLAIN }
}

impl TextStyle {
    /// Returns the same style in bold.
    pub const fn bold(self) -> TextStyle {
        TextStyle { bold: true, ..self }
    }

    /// Applies the parameters between `ESC [` and `m`; unknown ones are ignored.
    pub fn apply_sgr(&mut self, sequence: &str) {
        // A colon separates the subparameters of one parameter: `38:2::1:2:3`, `4:3`.
        let mut params = sequence.split(';');
        while let Some(param) = params.next() {
            let mut parts = param.split(':');
            let code = parse_param(parts.next().unwrap_or_default());
            if let Some(38 | 48) = code {
                let parts: Vec<&str> = parts.collect();
                let color = if parts.is_empty() {
                    semicolon_color(&mut params)
                } else {
                    colon_color(&parts)
                };
                if let Some(color) = color {
                    *(if code == Some(38) { &mut self.fg } else { &mut self.bg }) = color;
                }
                continue;
            }
            let underline_style = parts.next().and_then(parse_param);
            if let Some(code) = code {
                self.apply_code(code, underline_style);
            }
        }
    }

    fn apply_code(&mut self, code: u16, underline_style: Option<u16>) {
        match code {
            0 => *self = PLAIN,
            1 => self.bold = true,
            2 => self.dim = true,
            3 => self.italic = true,
            4 => self.underline = underline_style != Some(0),
            7 => self.inverse = true,
            9 => self.strikethrough = true,
            21 => self.underline = true,
            22 => (self.bold, self.dim) = (false, false),
            23 => self.italic = false,
            24 => self.underline = false,
            27 => self.inverse = false,
            29 => self.strikethrough = false,
            30..=37 => self.fg = Color::Indexed((code - 30) as u8),
            39 => self.fg = Color::Default,
            40..=47 => self.bg = Color::Indexed((code - 40) as u8),
            49 => self.bg = Color::Default,
            90..=97 => self.fg = Color::Indexed((code - 90 + 8) as u8),
            100..=107 => self.bg = Color::Indexed((code - 100 + 8) as u8),
            _ => {}
        }
    }

    /// Returns the SGR parameters that switch from no style to this one.
    pub fn sgr_params(&self) -> String {
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
            (self.strikethrough, "9"),
        ];
        flags.iter().filter(|(on, _)| *on).for_each(|(_, code)| add(code));
        for (color, base) in [(self.fg, 30u16), (self.bg, 40)] {
            match color {
                Color::Default => {}
                Color::Indexed(n @ 0..=7) => add(&(base + u16::from(n)).to_string()),
                Color::Indexed(n @ 8..=15) => add(&(base + 52 + u16::from(n)).to_string()),
                Color::Indexed(n) => add(&format!("{};5;{n}", base + 8)),
                Color::Rgb(r, g, b) => add(&format!("{};2;{r};{g};{b}", base + 8)),
            }
        }
        out
    }

    /// Returns the CSS classes of the style; colors become the nearest of the basic 16.
    pub fn css_classes(&self) -> String {
        let mut out = String::new();
        let flags = [
            (self.bold, "b"),
            (self.dim, "d"),
            (self.italic, "i"),
            (self.underline, "u"),
            (self.strikethrough, "s"),
        ];
        for (_, name) in flags.iter().filter(|(on, _)| *on) {
            let _ = write!(out, " {name}");
        }
        // Inverse text needs two colors; a missing one is the color of the page.
        let (fg, bg) = if self.inverse { (self.bg, self.fg) } else { (self.fg, self.bg) };
        for (color, name) in [(fg, 'f'), (bg, 'g')] {
            match nearest_basic(color) {
                Some(n) => drop(write!(out, " {name}{n}")),
                None if self.inverse && color == Color::Default => drop(write!(out, " {name}v")),
                None => {}
            }
        }
        out.trim_start().to_owned()
    }
}

/// Returns the nearest of the 16 basic colors: pages have a dark and a light theme for those only.
fn nearest_basic(color: Color) -> Option<u8> {
    let (r, g, b) = match color {
        Color::Default => return None,
        Color::Indexed(n @ 0..=15) => return Some(n),
        Color::Indexed(n @ 16..=231) => {
            let (n, part) = (n - 16, |level: u8| if level == 0 { 0 } else { 55 + level * 40 });
            (part(n / 36), part(n / 6 % 6), part(n % 6))
        }
        Color::Indexed(n) => (8 + (n - 232) * 10, 8 + (n - 232) * 10, 8 + (n - 232) * 10),
        Color::Rgb(r, g, b) => (r, g, b),
    };
    let (brightest, darkest) = (r.max(g).max(b), r.min(g).min(b));
    if brightest - darkest < 32 {
        return Some(match brightest {
            0..=63 => 0,
            64..=159 => 8,
            160..=223 => 7,
            224.. => 15,
        });
    }
    let middle = darkest + (brightest - darkest) / 2;
    let hue = u8::from(r > middle) | u8::from(g > middle) << 1 | u8::from(b > middle) << 2;
    Some(if darkest > 64 { hue + 8 } else { hue })
}

/// Parses the color of `5;n` or `2;r;g;b` from the parameters that follow.
fn semicolon_color<'a>(params: &mut impl Iterator<Item = &'a str>) -> Option<Color> {
    let mut next = || params.next().and_then(parse_param).and_then(|n| u8::try_from(n).ok());
    match next()? {
        5 => next().map(Color::Indexed),
        2 => Some(Color::Rgb(next()?, next()?, next()?)),
        _ => None,
    }
}

/// Parses the color of `5:n`, `2:r:g:b` or `2::r:g:b`.
fn colon_color(parts: &[&str]) -> Option<Color> {
    let byte = |part: &str| parse_param(part).and_then(|n| u8::try_from(n).ok());
    match parts {
        ["5", n] => byte(n).map(Color::Indexed),
        ["2", r, g, b] | ["2", _, r, g, b] => Some(Color::Rgb(byte(r)?, byte(g)?, byte(b)?)),
        _ => None,
    }
}

/// Parses one parameter; an empty one is 0.
fn parse_param(text: &str) -> Option<u16> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(params: &str) -> TextStyle {
        let mut style = PLAIN;
        style.apply_sgr(params);
        style
    }

    #[test]
    fn sgr_params_round_trip() {
        for params in ["1;31", "2;3;4;9", "7;97;104", "38;5;208", "38;2;1;2;3;48;2;4;5;6", "31;42"]
        {
            assert_eq!(style(params).sgr_params(), params);
        }
        assert_eq!(style("38:2::1:2:3"), style("38;2;1;2;3"));
        assert_eq!(style("38:5:9"), style("38;5;9"));
        assert_eq!(style("4:3"), style("4"));
        assert_eq!(style("4:0"), PLAIN);
        assert_eq!(style("1;31;0"), PLAIN);
        assert_eq!(style("1;31;"), PLAIN);
        assert_eq!(style(""), PLAIN);
    }

    #[test]
    fn sgr_that_hides_text_or_is_malformed_is_ignored() {
        for params in ["8", "5", "6", "28", "38", "38;5", "38;2;1", "38;5;999", "99999"] {
            assert_eq!(style(params), PLAIN, "{params}");
        }
        assert_eq!(style("31;8"), style("31"));
    }

    #[test]
    fn css_classes_name_flags_and_nearest_colors() {
        assert_eq!(style("1;31").css_classes(), "b f1");
        assert_eq!(style("7").css_classes(), "fv gv");
        assert_eq!(style("7;31").css_classes(), "fv g1");
        assert_eq!(style("38;5;196").css_classes(), "f1");
        assert_eq!(style("38;2;250;250;250").css_classes(), "f15");
        assert_eq!(style("38;5;240").css_classes(), "f8");
    }
}
