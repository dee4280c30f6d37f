//! Writes JSON. The output equals that of `serde_json`; long strings, which dominate, are scanned 16
//! bytes at a time.

use super::index::{plain_end, specials};
use serde::Serialize;
use serde::ser::{self, Serializer};
use std::fmt;

/// The struct name with which `serde_json` marks text that is JSON already.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Appends `value` as JSON.
pub fn to_writer(
    out: &mut Vec<u8>,
    value: &(impl Serialize + ?Sized),
) -> Result<(), SerializeError> {
    value.serialize(&mut JsonWriter { out, is_raw: false })
}

/// The error of a value that cannot be JSON: a key that is not a string, or an error of the value.
#[derive(Debug)]
pub struct SerializeError(String);

impl fmt::Display for SerializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SerializeError {}

impl ser::Error for SerializeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        SerializeError(message.to_string())
    }
}

struct JsonWriter<'a> {
    out: &'a mut Vec<u8>,
    /// The next string is JSON already.
    is_raw: bool,
}

impl JsonWriter<'_> {
    fn write_display(&mut self, value: impl fmt::Display) {
        self.out.extend_from_slice(value.to_string().as_bytes());
    }

    fn write_string(&mut self, text: &str) {
        let b = text.as_bytes();
        self.out.reserve(b.len() + 18);
        self.out.push(b'"');
        let mut at = 0;
        loop {
            // Copies first and truncates then: most chunks are plain.
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
            self.write_escape(c);
            at += 1;
        }
        self.out.push(b'"');
    }

    fn write_escape(&mut self, c: u8) {
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
}

/// An array or an object that is being written.
struct Compound<'p, 'a> {
    writer: &'p mut JsonWriter<'a>,
    first: bool,
    end: &'static [u8],
}

impl Compound<'_, '_> {
    fn comma(&mut self) {
        if !self.first {
            self.writer.out.push(b',');
        }
        self.first = false;
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
        self.comma();
        value.serialize(&mut *self.writer)
    }

    fn entry<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), SerializeError> {
        if self.writer.is_raw {
            return value.serialize(&mut *self.writer);
        }
        self.comma();
        self.writer.write_string(key);
        self.writer.out.push(b':');
        value.serialize(&mut *self.writer)
    }

    fn close(self) {
        if self.writer.is_raw {
            self.writer.is_raw = false;
        } else {
            self.writer.out.extend_from_slice(self.end);
        }
    }
}

macro_rules! display {
    ($($name:ident $type:ty),*) => { $(
        fn $name(self, v: $type) -> Result<(), SerializeError> {
            self.write_display(v);
            Ok(())
        }
    )* };
}

impl<'p, 'a> Serializer for &'p mut JsonWriter<'a> {
    type Ok = ();
    type Error = SerializeError;
    type SerializeSeq = Compound<'p, 'a>;
    type SerializeTuple = Compound<'p, 'a>;
    type SerializeTupleStruct = Compound<'p, 'a>;
    type SerializeTupleVariant = Compound<'p, 'a>;
    type SerializeMap = Compound<'p, 'a>;
    type SerializeStruct = Compound<'p, 'a>;
    type SerializeStructVariant = Compound<'p, 'a>;

    display!(
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32,
        serialize_i64 i64, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32,
        serialize_u64 u64
    );

    fn serialize_f32(self, v: f32) -> Result<(), SerializeError> {
        self.serialize_f64(f64::from(v))
    }

    fn serialize_f64(self, v: f64) -> Result<(), SerializeError> {
        let text = serde_json::to_string(&v).map_err(|e| SerializeError(e.to_string()))?;
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn serialize_char(self, v: char) -> Result<(), SerializeError> {
        self.write_string(v.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, v: &str) -> Result<(), SerializeError> {
        if self.is_raw {
            self.out.extend_from_slice(v.as_bytes());
        } else {
            self.write_string(v);
        }
        Ok(())
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<(), SerializeError> {
        v.serialize(self)
    }

    fn serialize_none(self) -> Result<(), SerializeError> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<(), SerializeError> {
        v.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), SerializeError> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), SerializeError> {
        self.serialize_none()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<(), SerializeError> {
        self.write_string(name);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        v: &T,
    ) -> Result<(), SerializeError> {
        v.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        v: &T,
    ) -> Result<(), SerializeError> {
        let mut compound = self.serialize_map(None)?;
        compound.entry(name, v)?;
        compound.close();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'p, 'a>, SerializeError> {
        self.out.push(b'[');
        Ok(Compound { writer: self, first: true, end: b"]" })
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'p, 'a>, SerializeError> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Compound<'p, 'a>, SerializeError> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Compound<'p, 'a>, SerializeError> {
        self.out.push(b'{');
        self.write_string(name);
        self.out.extend_from_slice(b":[");
        Ok(Compound { writer: self, first: true, end: b"]}" })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'p, 'a>, SerializeError> {
        self.out.push(b'{');
        Ok(Compound { writer: self, first: true, end: b"}" })
    }

    fn serialize_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Compound<'p, 'a>, SerializeError> {
        if name == RAW_VALUE {
            self.is_raw = true;
            return Ok(Compound { writer: self, first: true, end: b"" });
        }
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Compound<'p, 'a>, SerializeError> {
        self.out.push(b'{');
        self.write_string(name);
        self.out.extend_from_slice(b":{");
        Ok(Compound { writer: self, first: true, end: b"}}" })
    }
}

macro_rules! items {
    ($($trait:ident $method:ident),*) => { $(
        impl ser::$trait for Compound<'_, '_> {
            type Ok = ();
            type Error = SerializeError;

            fn $method<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), SerializeError> {
                self.item(v)
            }

            fn end(self) -> Result<(), SerializeError> {
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
        impl ser::$trait for Compound<'_, '_> {
            type Ok = ();
            type Error = SerializeError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                v: &T,
            ) -> Result<(), SerializeError> {
                self.entry(key, v)
            }

            fn end(self) -> Result<(), SerializeError> {
                self.close();
                Ok(())
            }
        }
    )* };
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Compound<'_, '_> {
    type Ok = ();
    type Error = SerializeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), SerializeError> {
        self.comma();
        let from = self.writer.out.len();
        key.serialize(&mut *self.writer)?;
        if self.writer.out.get(from) != Some(&b'"') {
            return Err(SerializeError("object key is not a string".to_owned()));
        }
        self.writer.out.push(b':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), SerializeError> {
        v.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), SerializeError> {
        self.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::to_writer;
    use serde_json::{Value, json};

    fn written(value: &Value) -> String {
        let mut out = Vec::new();
        to_writer(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn writer_output_equals_serde_json() {
        let controls: String = (0..0x60).filter_map(char::from_u32).collect();
        let value = json!({
            "text": controls.repeat(3), "empty": {}, "list": [1, -2, 3.5, 1e30, true, null, []],
            "unicode": "naïve 日本 🚀 \u{7f}\u{2028}", "nested": {"a": {"b": ["c"]}}, "": "",
        });
        assert_eq!(written(&value), serde_json::to_string(&value).unwrap());
    }
}
