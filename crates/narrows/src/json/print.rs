//! Writing JSON. The same text as `serde_json` writes, faster where it matters: most of what is
//! printed are long strings, and their plain parts are found sixteen bytes at a time.

use super::index::{plain_end, specials};
use serde::Serialize;
use serde::ser::{self, Serializer};
use std::fmt;

/// How `serde_json` marks text that is JSON already.
const RAW: &str = "$serde_json::private::RawValue";

/// Appends `value` as JSON.
pub fn print(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
    value.serialize(&mut Printer { out, raw: false })
}

/// Why a value cannot be JSON: a key that is no string, or the value's own refusal.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl ser::Error for Error {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Error(what.to_string())
    }
}

struct Printer<'a> {
    out: &'a mut Vec<u8>,
    /// The next string is JSON already.
    raw: bool,
}

impl Printer<'_> {
    fn plain(&mut self, value: impl fmt::Display) {
        self.out.extend_from_slice(value.to_string().as_bytes());
    }

    fn string(&mut self, text: &str) {
        let b = text.as_bytes();
        self.out.reserve(b.len() + 18);
        self.out.push(b'"');
        let mut at = 0;
        loop {
            // Copy first, look then: what is too much is taken back.
            if let Some(chunk) = b.get(at..at + 16).and_then(<[u8]>::first_chunk::<16>) {
                self.out.extend_from_slice(chunk);
                let hits = specials(chunk);
                if hits == 0 {
                    at += 16;
                    continue;
                }
                let plain = hits.trailing_zeros() as usize;
                self.out.truncate(self.out.len() - 16 + plain);
                at += plain;
            } else {
                let end = plain_end(b, at);
                self.out.extend_from_slice(b.get(at..end).unwrap_or_default());
                at = end;
            }
            let Some(&c) = b.get(at) else { break };
            self.escape(c);
            at += 1;
        }
        self.out.push(b'"');
    }

    fn escape(&mut self, c: u8) {
        let short = match c {
            b'"' | b'\\' => c,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0C => b'f',
            _ => {
                let hex = |n: u8| b"0123456789abcdef"[usize::from(n & 15)];
                self.out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(c >> 4), hex(c)]);
                return;
            }
        };
        self.out.extend_from_slice(&[b'\\', short]);
    }

    fn open(&mut self, c: u8) {
        self.out.push(c);
    }
}

/// An array or an object that is being written.
struct Open<'p, 'a> {
    printer: &'p mut Printer<'a>,
    first: bool,
    end: &'static [u8],
}

impl Open<'_, '_> {
    fn comma(&mut self) {
        if !self.first {
            self.printer.out.push(b',');
        }
        self.first = false;
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.comma();
        value.serialize(&mut *self.printer)
    }

    fn entry<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        if self.printer.raw {
            return value.serialize(&mut *self.printer);
        }
        self.comma();
        self.printer.string(key);
        self.printer.out.push(b':');
        value.serialize(&mut *self.printer)
    }

    fn close(self) {
        if self.printer.raw {
            self.printer.raw = false;
        } else {
            self.printer.out.extend_from_slice(self.end);
        }
    }
}

macro_rules! plain {
    ($($name:ident $type:ty),*) => { $(
        fn $name(self, v: $type) -> Result<(), Error> {
            self.plain(v);
            Ok(())
        }
    )* };
}

impl<'p, 'a> Serializer for &'p mut Printer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Open<'p, 'a>;
    type SerializeTuple = Open<'p, 'a>;
    type SerializeTupleStruct = Open<'p, 'a>;
    type SerializeTupleVariant = Open<'p, 'a>;
    type SerializeMap = Open<'p, 'a>;
    type SerializeStruct = Open<'p, 'a>;
    type SerializeStructVariant = Open<'p, 'a>;

    plain!(
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32,
        serialize_i64 i64, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32,
        serialize_u64 u64
    );

    fn serialize_f32(self, v: f32) -> Result<(), Error> {
        self.serialize_f64(f64::from(v))
    }

    fn serialize_f64(self, v: f64) -> Result<(), Error> {
        let text = serde_json::to_string(&v).map_err(|e| Error(e.to_string()))?;
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn serialize_char(self, v: char) -> Result<(), Error> {
        self.string(v.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, v: &str) -> Result<(), Error> {
        if self.raw {
            self.out.extend_from_slice(v.as_bytes());
        } else {
            self.string(v);
        }
        Ok(())
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<(), Error> {
        v.serialize(self)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<(), Error> {
        v.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_none()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<(), Error> {
        self.string(name);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        v: &T,
    ) -> Result<(), Error> {
        v.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        v: &T,
    ) -> Result<(), Error> {
        let mut open = self.serialize_map(None)?;
        open.entry(name, v)?;
        open.close();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'p, 'a>, Error> {
        self.open(b'[');
        Ok(Open { printer: self, first: true, end: b"]" })
    }

    fn serialize_tuple(self, _: usize) -> Result<Open<'p, 'a>, Error> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Open<'p, 'a>, Error> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Open<'p, 'a>, Error> {
        self.open(b'{');
        self.string(name);
        self.out.extend_from_slice(b":[");
        Ok(Open { printer: self, first: true, end: b"]}" })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Open<'p, 'a>, Error> {
        self.open(b'{');
        Ok(Open { printer: self, first: true, end: b"}" })
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Open<'p, 'a>, Error> {
        if name == RAW {
            self.raw = true;
            return Ok(Open { printer: self, first: true, end: b"" });
        }
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Open<'p, 'a>, Error> {
        self.open(b'{');
        self.string(name);
        self.out.extend_from_slice(b":{");
        Ok(Open { printer: self, first: true, end: b"}}" })
    }
}

macro_rules! items {
    ($($trait:ident $method:ident),*) => { $(
        impl ser::$trait for Open<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Error> {
                self.item(v)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        }
    )* };
}

items!(
    SerializeSeq serialize_element, SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field
);

macro_rules! fields {
    ($($trait:ident),*) => { $(
        impl ser::$trait for Open<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                v: &T,
            ) -> Result<(), Error> {
                self.entry(key, v)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        }
    )* };
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Open<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.comma();
        let from = self.printer.out.len();
        key.serialize(&mut *self.printer)?;
        if self.printer.out.get(from) != Some(&b'"') {
            return Err(Error("a key that is no string".to_owned()));
        }
        self.printer.out.push(b':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Error> {
        v.serialize(&mut *self.printer)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::print;
    use serde_json::{Value, json};

    fn printed(value: &Value) -> String {
        let mut out = Vec::new();
        print(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn prints_what_serde_json_prints() {
        let controls: String = (0..0x60).filter_map(char::from_u32).collect();
        let value = json!({
            "text": controls.repeat(3), "empty": {}, "list": [1, -2, 3.5, 1e30, true, null, []],
            "unicode": "naïve 日本 🚀 \u{7f}\u{2028}", "nested": {"a": {"b": ["c"]}}, "": "",
        });
        assert_eq!(printed(&value), serde_json::to_string(&value).unwrap());
    }
}
