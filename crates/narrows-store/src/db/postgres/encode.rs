//! Encoding of parameters for PostgreSQL, and decoding of columns.

use crate::db::value::{Value, mismatch};
use crate::error::Result;
use bytes::{BufMut, BytesMut};
use tokio_postgres::Row;
use tokio_postgres::types::{IsNull, Kind, ToSql, Type, to_sql_checked};

/// An encoded parameter.
#[derive(Debug)]
pub(super) struct EncodedParam(pub(super) Option<BytesMut>);

impl ToSql for EncodedParam {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match &self.0 {
            Some(bytes) => {
                out.extend_from_slice(bytes);
                Ok(IsNull::No)
            }
            None => Ok(IsNull::Yes),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Encodes a value for a parameter of the type `kind`; `None` is NULL.
pub(super) fn encode(value: &Value<'_>, kind: &Type) -> Result<Option<BytesMut>> {
    let mut out = BytesMut::new();
    Ok(matches!(put(value, kind, &mut out)?, IsNull::No).then_some(out))
}

fn put(value: &Value<'_>, kind: &Type, out: &mut BytesMut) -> Result<IsNull> {
    let invalid = |_| mismatch();
    match (value, kind.kind()) {
        (Value::Null, _) => Ok(IsNull::Yes),
        (Value::List(values), Kind::Array(member)) => put_array(values, member, out),
        (Value::Int(n), _) => put_integer(*n, kind, out),
        (Value::Real(n), _) => n.to_sql(&Type::FLOAT8, out).map_err(invalid),
        (Value::Text(text), _) if *kind == Type::BYTEA => {
            text.as_bytes().to_sql(kind, out).map_err(invalid)
        }
        // PostgreSQL texts cannot contain NUL.
        (Value::Text(text), _) if text.contains('\0') => {
            text.replace('\0', "\u{fffd}").to_sql(&Type::TEXT, out).map_err(invalid)
        }
        (Value::Text(text), _) => text.to_sql(&Type::TEXT, out).map_err(invalid),
        (Value::Bytes(bytes), _) => bytes.to_sql(&Type::BYTEA, out).map_err(invalid),
        (Value::List(_), _) => Err(mismatch()),
    }
}

fn put_integer(n: i64, kind: &Type, out: &mut BytesMut) -> Result<IsNull> {
    match *kind {
        Type::INT8 => n.to_sql(kind, out),
        Type::INT4 => i32::try_from(n).map_err(|_| mismatch())?.to_sql(kind, out),
        Type::BOOL => (n != 0).to_sql(kind, out),
        _ => return Err(mismatch()),
    }
    .map_err(|_| mismatch())
}

/// Encodes a one-dimensional array in its wire format, into one buffer.
fn put_array(values: &[Value<'_>], member: &Type, out: &mut BytesMut) -> Result<IsNull> {
    let size = |n: usize| i32::try_from(n).map_err(|_| mismatch());
    let has_null = values.iter().any(|value| matches!(value, Value::Null));
    let dimensions = i32::from(!values.is_empty());
    out.put_i32(dimensions);
    out.put_i32(i32::from(has_null));
    out.put_u32(member.oid());
    if values.is_empty() {
        return Ok(IsNull::No);
    }
    out.put_i32(size(values.len())?);
    out.put_i32(1);
    for value in values {
        let at = out.len();
        out.put_i32(-1);
        if let IsNull::No = put(value, member, out)? {
            let bytes = size(out.len() - at - 4)?;
            out[at..at + 4].copy_from_slice(&bytes.to_be_bytes());
        }
    }
    Ok(IsNull::No)
}

/// Decodes a column.
pub(crate) fn column(row: &Row, at: usize) -> Result<Value<'_>> {
    let invalid = |_| mismatch();
    let kind = row.columns().get(at).map(tokio_postgres::Column::type_);
    Ok(match kind {
        Some(&Type::INT8) => row.try_get::<_, Option<i64>>(at).map_err(invalid)?.map(Value::Int),
        Some(&Type::INT4) => {
            row.try_get::<_, Option<i32>>(at).map_err(invalid)?.map(|n| Value::Int(n.into()))
        }
        Some(&Type::BOOL) => {
            row.try_get::<_, Option<bool>>(at).map_err(invalid)?.map(|b| Value::Int(b.into()))
        }
        Some(&Type::FLOAT8) => row.try_get::<_, Option<f64>>(at).map_err(invalid)?.map(Value::Real),
        Some(&Type::BYTEA) => {
            row.try_get::<_, Option<&[u8]>>(at).map_err(invalid)?.map(Value::Bytes)
        }
        Some(&(Type::TEXT | Type::VARCHAR | Type::NAME)) => {
            row.try_get::<_, Option<&str>>(at).map_err(invalid)?.map(Value::Text)
        }
        _ => return Err(mismatch()),
    }
    .unwrap_or(Value::Null))
}
