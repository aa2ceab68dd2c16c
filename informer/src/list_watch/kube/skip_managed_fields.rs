//! Drops `metadata.managedFields` while an object is parsed, before anything is allocated for it.
//!
//! The adaptor works by place, not by type name: it wraps the deserializer of the object and, inside it, the one of
//! its `metadata`, and hides one key there. So it works for every type, derived or generated, for a struct, a map, or
//! what `#[serde(flatten)]` buffers; and it costs nothing further inside an object.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, IntoDeserializer, MapAccess,
    SeqAccess, Visitor, value::BorrowedStrDeserializer,
};

use crate::json::Key;

/// Where we are in the object: what happens to the values of its keys.
pub(super) trait Place: 'static {
    /// Whether the value of this key is dropped.
    fn drops(key: &str) -> bool;

    /// Whether the value of this key is wrapped in turn.
    fn enters(key: &str) -> bool;
}

/// The whole object.
pub(super) enum Root {}

/// The object's `metadata`.
pub(super) enum Metadata {}

/// A deserializer, visitor or access at a place of an object.
pub(super) struct Skip<T, P>(T, PhantomData<P>);

// === impl Place ===

impl Place for Root {
    fn drops(_: &str) -> bool {
        false
    }

    fn enters(key: &str) -> bool {
        key == "metadata"
    }
}

impl Place for Metadata {
    fn drops(key: &str) -> bool {
        key == "managedFields"
    }

    fn enters(_: &str) -> bool {
        false
    }
}

// === impl Skip ===

impl<T> Skip<T, Root> {
    /// Wraps the deserializer of a whole object.
    pub(super) fn object(deserializer: T) -> Self {
        Self(deserializer, PhantomData)
    }
}

impl<T, P> Skip<T, P> {
    fn at(inner: T) -> Self {
        Self(inner, PhantomData)
    }
}

macro_rules! forward_deserialize {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Skip::<V, P>::at(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>, P: Place> Deserializer<'de> for Skip<D, P> {
    type Error = D::Error;

    forward_deserialize! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32
        deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32
        deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
        deserialize_option deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Skip::<V, P>::at(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Skip::<V, P>::at(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(length, Skip::<V, P>::at(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, length, Skip::<V, P>::at(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Skip::<V, P>::at(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Skip::<V, P>::at(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! forward_visit {
    ($($method:ident($value:ty))*) => {$(
        fn $method<E: Error>(self, value: $value) -> Result<V::Value, E> {
            self.0.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>, P: Place> Visitor<'de> for Skip<V, P> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    forward_visit! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64)
        visit_i128(i128) visit_u8(u8) visit_u16(u16) visit_u32(u32) visit_u64(u64)
        visit_u128(u128) visit_f32(f32) visit_f64(f64) visit_char(char) visit_str(&str)
        visit_borrowed_str(&'de str) visit_string(String) visit_bytes(&[u8])
        visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Skip::<D, P>::at(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Skip::<D, P>::at(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(access)
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Entries::<A, P> { access, enter: false, place: PhantomData })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(access)
    }
}

/// The entries of a map at a place of the object.
struct Entries<A, P> {
    access: A,
    /// Whether the value that comes next is wrapped.
    enter: bool,
    place: PhantomData<P>,
}

impl<'de, A: MapAccess<'de>, P: Place> MapAccess<'de> for Entries<A, P> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        while let Some(Key(key)) = self.access.next_key::<Key<'de>>()? {
            if P::drops(&key) {
                self.access.next_value::<IgnoredAny>()?;
                continue;
            }
            self.enter = P::enters(&key);
            return match key {
                Cow::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some),
                Cow::Owned(key) => seed.deserialize(key.into_deserializer()).map(Some),
            };
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        if self.enter {
            self.access.next_value_seed(Skip::<S, Metadata>::at(seed))
        } else {
            self.access.next_value_seed(seed)
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.access.size_hint()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Skip<S, Metadata> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Skip::<D, Metadata>::at(deserializer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectMeta;
    use k8s_openapi::api::core::v1::Pod;
    use serde::{Deserialize, de::DeserializeOwned};
    use std::collections::BTreeMap;

    const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","managedFields":[
        {"manager":"m","fieldsV1":{"f:x":{}}}],"labels":{"managedFields":"kept"},"uid":"u"},
        "spec":{"containers":[{"name":"metadata"}]},"managedFields":"kept too"}"#;

    fn decode<T: DeserializeOwned>(text: &str) -> T {
        T::deserialize(Skip::object(&mut serde_json::Deserializer::from_str(text))).unwrap()
    }

    fn check(metadata: &ObjectMeta) {
        assert_eq!(metadata.managed_fields, None);
        assert_eq!(metadata.uid.as_deref(), Some("u"));
        assert_eq!(metadata.labels.as_ref().unwrap()["managedFields"], "kept");
    }

    #[test]
    fn generated_type_loses_managed_fields_and_nothing_else() {
        let pod: Pod = decode(POD);
        check(&pod.metadata);
        let mut whole: Pod = serde_json::from_str(POD).unwrap();
        assert!(whole.metadata.managed_fields.take().is_some());
        assert_eq!(pod, whole);
    }

    #[test]
    fn projection_loses_them_as_a_struct_a_newtype_or_flattened() {
        #[derive(Deserialize)]
        struct Plain {
            metadata: ObjectMeta,
        }
        #[derive(Deserialize)]
        struct Optional {
            metadata: Option<ObjectMeta>,
        }
        #[derive(Deserialize)]
        struct Newtype(Plain);
        #[derive(Deserialize)]
        struct Flat {
            #[serde(flatten)]
            plain: Plain,
            #[serde(flatten)]
            rest: BTreeMap<String, serde_json::Value>,
        }
        check(&decode::<Plain>(POD).metadata);
        check(&decode::<Optional>(POD).metadata.unwrap());
        check(&decode::<Newtype>(POD).0.metadata);
        let flat: Flat = decode(POD);
        check(&flat.plain.metadata);
        assert_eq!(flat.rest["managedFields"], "kept too");
    }

    #[test]
    fn untyped_value_loses_them_too() {
        let mut whole: serde_json::Value = serde_json::from_str(POD).unwrap();
        whole["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(decode::<serde_json::Value>(POD), whole);
        let escaped = r#"{"meta\u0064ata":{"managed\u0046ields":1,"name":"a"}}"#;
        assert_eq!(
            decode::<serde_json::Value>(escaped),
            serde_json::json!({"metadata": {"name": "a"}})
        );
    }

    #[test]
    fn raw_parts_stay_readable() {
        #[derive(Deserialize)]
        struct Lazy {
            metadata: ObjectMeta,
            spec: Box<serde_json::value::RawValue>,
        }
        let lazy: Lazy = decode(POD);
        check(&lazy.metadata);
        assert_eq!(lazy.spec.get(), r#"{"containers":[{"name":"metadata"}]}"#);
    }
}
