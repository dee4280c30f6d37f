//! Deserializers for fields that serde reads differently from how narrows prints them.

use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::value::RawValue;

/// Reads a fraction to the last bit; `serde_json` alone rounds it slightly differently.
pub(crate) fn exact_f64<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    let raw = <&RawValue>::deserialize(d)?.get();
    match raw {
        "null" => Ok(None),
        _ => raw.parse().map(Some).map_err(serde::de::Error::custom),
    }
}

/// Reads a field that is present, even if it is null: null differs from a missing field.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(d).map(Some)
}
