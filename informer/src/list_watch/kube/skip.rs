//! Skips members of an object while it is parsed, before memory is allocated for them.
//!
//! The adaptor works by position, not by type: it wraps the deserializer of the object and those of
//! its members down to the skipped ones, and hides keys there. So it works for derived and
//! generated types, structs, maps, and buffers of `#[serde(flatten)]`. Members without a skipped
//! one below them are not wrapped and cost nothing.
//!
//! The alternative, to decode everything and to drop it afterwards, allocates each skipped string
//! once. `managedFields` alone is up to half of an object.
//!
//! Types that ask for their input as raw text (`RawValue`) receive it complete: below such a value
//! nothing is skipped.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};

use super::prune::Prune;
use crate::json::Key;

/// A wrapped deserializer, visitor, access or seed, and its position in the object.
///
/// It is the same type in each role, because serde passes from one role to the next: a deserializer
/// calls a visitor, a visitor gets a map, a map calls seeds.
pub(super) struct Skip<'p, T> {
    inner: T,
    at: &'p Prune,
}

// === impl Skip ===

impl<'p, T> Skip<'p, T> {
    /// Wraps the deserializer of a complete object, or `inner` at a position in it.
    ///
    /// It costs two words and allocates nothing.
    pub(super) fn new(inner: T, at: &'p Prune) -> Self {
        Self { inner, at }
    }
}

/// Methods of a deserializer that pass a wrapped visitor on. The hints of the type (struct, map,
/// identifier) reach the inner deserializer unchanged.
macro_rules! forward_deserialize {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method(Skip::new(visitor, self.at))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Skip<'_, D> {
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
        self.inner.deserialize_unit_struct(name, Skip::new(visitor, self.at))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_newtype_struct(name, Skip::new(visitor, self.at))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple(length, Skip::new(visitor, self.at))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple_struct(name, length, Skip::new(visitor, self.at))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_struct(name, fields, Skip::new(visitor, self.at))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_enum(name, variants, Skip::new(visitor, self.at))
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Methods of a visitor for values without members: nothing below them can be skipped.
macro_rules! forward_visit {
    ($($method:ident($value:ty))*) => {$(
        fn $method<E: Error>(self, value: $value) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Skip<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    forward_visit! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64)
        visit_i128(i128) visit_u8(u8) visit_u16(u16) visit_u32(u32) visit_u64(u64)
        visit_u128(u128) visit_f32(f32) visit_f64(f64) visit_char(char) visit_str(&str)
        visit_borrowed_str(&'de str) visit_string(String) visit_bytes(&[u8])
        visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Skip::new(deserializer, self.at))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Skip::new(deserializer, self.at))
    }

    /// An array without a path below it is passed on as it is.
    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        match self.at.elements() {
            Some(at) => self.inner.visit_seq(Elements { access, at }),
            None => self.inner.visit_seq(access),
        }
    }

    /// Every map on the way to a skipped member is wrapped: its keys have to be compared.
    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Entries { access, at: self.at, next: None })
    }

    /// Members inside of an enum are not skipped: no object of the API has one.
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(access)
    }
}

/// The entries of a map.
///
/// It hides the keys of skipped members from the visitor. Their values are read as [`IgnoredAny`],
/// which allocates nothing.
struct Entries<'p, A> {
    access: A,
    at: &'p Prune,
    /// The position of the next value, if something below it is skipped.
    next: Option<&'p Prune>,
}

/// The elements of an array.
///
/// With a path that ends in `*`, the array is shown without elements: they are read and ignored.
struct Elements<'p, A> {
    access: A,
    /// The position of each element.
    at: &'p Prune,
}

/// The keys of `serde_json`'s raw values begin with this. They stand for no member of the object.
const RAW_VALUE: &str = "$serde_json::private::";

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        while let Some(Key(key)) = self.access.next_key::<Key<'de>>()? {
            let next = self.at.member(&key).filter(|_| !key.starts_with(RAW_VALUE));
            if next.is_some_and(Prune::is_dropped) {
                self.access.next_value::<IgnoredAny>()?;
                continue;
            }
            self.next = next.filter(|next| !next.is_leaf());
            return match key {
                Cow::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some),
                Cow::Owned(key) => seed.deserialize(key.into_deserializer()).map(Some),
            };
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.next {
            Some(at) => self.access.next_value_seed(Skip::new(seed, at)),
            None => self.access.next_value_seed(seed),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.access.size_hint()
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Elements<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        if self.at.is_dropped() {
            while self.access.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(None);
        }
        if self.at.is_leaf() {
            return self.access.next_element_seed(seed);
        }
        self.access.next_element_seed(Skip::new(seed, self.at))
    }

    fn size_hint(&self) -> Option<usize> {
        self.access.size_hint()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Skip<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Skip::new(deserializer, self.at))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::object::ObjectMeta;

    const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","managedFields":[
        {"manager":"m","fieldsV1":{"f:x":{}}}],"labels":{"managedFields":"kept"},"uid":"u"},
        "spec":{"containers":[{"name":"metadata"}]},"managedFields":"kept too"}"#;

    fn pruned<T: DeserializeOwned>(paths: &[&str], text: &str) -> T {
        let mut prune = Prune::default();
        for path in paths {
            prune.add(path).unwrap();
        }
        T::deserialize(Skip::new(&mut serde_json::Deserializer::from_str(text), &prune)).unwrap()
    }

    fn decode<T: DeserializeOwned>(text: &str) -> T {
        pruned(&["metadata.managedFields"], text)
    }

    fn check(metadata: &ObjectMeta) {
        assert_eq!(metadata.managed_fields, None);
        assert_eq!(metadata.uid.as_deref(), Some("u"));
        assert_eq!(metadata.labels.as_ref().unwrap()["managedFields"], "kept");
    }

    #[test]
    fn generated_type_loses_only_managed_fields() {
        let pod: Pod = decode(POD);
        check(&pod.metadata);
        let mut whole: Pod = serde_json::from_str(POD).unwrap();
        assert!(whole.metadata.managed_fields.take().is_some());
        assert_eq!(pod, whole);
    }

    #[test]
    fn projection_loses_managed_fields_as_struct_newtype_or_flattened() {
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
    fn untyped_value_loses_managed_fields() {
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
    fn raw_value_fields_stay_readable() {
        #[derive(Deserialize)]
        struct Lazy {
            metadata: ObjectMeta,
            spec: Box<serde_json::value::RawValue>,
        }
        let lazy: Lazy = decode(POD);
        check(&lazy.metadata);
        assert_eq!(lazy.spec.get(), r#"{"containers":[{"name":"metadata"}]}"#);
    }

    #[test]
    fn path_skips_members_of_structs_maps_and_arrays() {
        const WEB: &str = r#"{"metadata":{"name":"a","annotations":{"a.b/c":"1","d":"2"}},
            "spec":{"nodeName":"n","volumes":[{"name":"v"}],"containers":[
                {"name":"c","env":[{"name":"E"}],"volumeMounts":[{"name":"v","mountPath":"/"}]},
                {"name":"d","env":[],"args":["x"]}]},
            "status":{"phase":"Running"}}"#;
        let paths = [
            "spec.volumes",
            "spec.containers.*.env",
            r"metadata.annotations.a\.b/c",
            "status",
            "spec.containers.*.volumeMounts.*.mountPath",
            "spec.containers.*.args.*",
        ];
        let expected = serde_json::json!({
            "metadata": {"name": "a", "annotations": {"d": "2"}},
            "spec": {"nodeName": "n", "containers": [
                {"name": "c", "volumeMounts": [{"name": "v"}]}, {"name": "d", "args": []},
            ]},
        });
        assert_eq!(pruned::<serde_json::Value>(&paths, WEB), expected);
        let pod: Pod = pruned(&paths, WEB);
        let spec = pod.spec.unwrap();
        assert_eq!((spec.volumes, pod.status), (None, None));
        assert_eq!(spec.containers[0].env, None);
        assert_eq!(spec.containers[1].name, "d");
        assert_eq!(pod.metadata.annotations.unwrap().len(), 1);
    }

    #[test]
    fn raw_value_below_a_path_is_kept_as_it_is() {
        #[derive(Deserialize)]
        struct Raw {
            spec: Box<serde_json::value::RawValue>,
        }
        for path in ["spec.containers.*.name", "spec.*", "spec.*.*"] {
            let raw: Raw = pruned(&[path], POD);
            assert_eq!(raw.spec.get(), r#"{"containers":[{"name":"metadata"}]}"#);
        }
    }
}
