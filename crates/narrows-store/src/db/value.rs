//! Values of parameters and columns.

use crate::error::{Error, Result};
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use std::borrow::Cow;

/// A value of a column or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// An array; PostgreSQL only.
    List(Vec<Value<'a>>),
}

/// A type that can be a parameter.
pub(crate) trait Param {
    fn value(&self) -> Value<'_>;
}

/// A type that a column can be read as.
pub(crate) trait FromValue: Sized {
    fn from_value(value: Value<'_>) -> Result<Self>;
}

pub(super) fn mismatch() -> Error {
    Error::Damaged("a column has an unexpected type".to_owned())
}

pub(super) fn from_sqlite(value: ValueRef<'_>) -> Result<Value<'_>> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(n) => Value::Int(n),
        ValueRef::Real(n) => Value::Real(n),
        ValueRef::Text(text) => Value::Text(std::str::from_utf8(text).map_err(|_| mismatch())?),
        ValueRef::Blob(bytes) => Value::Bytes(bytes),
    })
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null | Value::List(_) => ValueRef::Null,
            Value::Int(n) => ValueRef::Integer(*n),
            Value::Real(n) => ValueRef::Real(*n),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Param for Value<'_> {
    fn value(&self) -> Value<'_> {
        self.clone()
    }
}

macro_rules! integer {
    ($($kind:ty),*) => {$(
        impl Param for $kind {
            fn value(&self) -> Value<'_> {
                // Saturates: no counter here comes near `i64::MAX`.
                i64::try_from(*self).map_or(Value::Int(i64::MAX), Value::Int)
            }
        }

        impl FromValue for $kind {
            fn from_value(value: Value<'_>) -> Result<Self> {
                match value {
                    Value::Int(n) => Self::try_from(n).map_err(|_| mismatch()),
                    _ => Err(mismatch()),
                }
            }
        }
    )*};
}
integer!(i64, u64, u32, usize);

impl Param for bool {
    fn value(&self) -> Value<'_> {
        Value::Int(i64::from(*self))
    }
}

impl FromValue for bool {
    fn from_value(value: Value<'_>) -> Result<Self> {
        i64::from_value(value).map(|n| n != 0)
    }
}

impl Param for f64 {
    fn value(&self) -> Value<'_> {
        Value::Real(*self)
    }
}

impl FromValue for f64 {
    fn from_value(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Real(n) => Ok(n),
            _ => Err(mismatch()),
        }
    }
}

impl Param for str {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Param for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Param for Cow<'_, str> {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl FromValue for String {
    fn from_value(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Text(text) => Ok(text.to_owned()),
            _ => Err(mismatch()),
        }
    }
}

impl Param for [u8] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl Param for Vec<u8> {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Bytes(bytes) => Ok(bytes.to_vec()),
            _ => Err(mismatch()),
        }
    }
}

impl<const N: usize> FromValue for [u8; N] {
    fn from_value(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Bytes(bytes) => bytes.try_into().map_err(|_| mismatch()),
            _ => Err(mismatch()),
        }
    }
}

impl<T: Param + ?Sized> Param for &T {
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

impl<T: Param> Param for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Param::value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}
