//! Reads the struct and its attributes.

use syn::spanned::Spanned as _;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, LitStr, Path, Result, Type};

/// A field of the struct, except `metadata`.
pub(crate) struct Field {
    pub(crate) name: Ident,
    pub(crate) of: Type,
    /// The names of the members on the way to the field, outermost first.
    pub(crate) path: Vec<String>,
    /// The path as the author wrote it.
    pub(crate) text: LitStr,
    /// The function that decodes the field, as serde's `deserialize_with`.
    pub(crate) with: Option<Path>,
}

/// The struct.
pub(crate) struct Input {
    /// The kind that types the keys.
    pub(crate) kind: Path,
    /// The type of the field `metadata`.
    pub(crate) metadata: Type,
    pub(crate) fields: Vec<Field>,
}

/// The values of one `#[projection(…)]`.
#[derive(Default)]
struct Values {
    kind: Option<Path>,
    path: Option<LitStr>,
    with: Option<Path>,
}

/// Reads the input of the macro.
pub(crate) fn read(input: &DeriveInput) -> Result<Input> {
    if !input.generics.params.is_empty() {
        return Err(Error::new(input.generics.span(), "a projection has no type parameters"));
    }
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "a projection is a struct"));
    };
    let Fields::Named(named) = &data.fields else {
        return Err(Error::new(input.ident.span(), "the fields of a projection have names"));
    };
    let values = values(&input.attrs)?;
    if let Some(path) = values.path {
        return Err(Error::new(path.span(), "`path` belongs to a field"));
    }
    let kind = values.kind.ok_or_else(|| {
        Error::new(input.ident.span(), "name the kind: `#[projection(kind = Pod)]`")
    })?;
    let mut metadata = None;
    let mut fields = Vec::new();
    for field in &named.named {
        match field.ident.as_ref() {
            Some(name) if name == "metadata" => metadata = Some(field.ty.clone()),
            Some(name) => fields.push(read_field(name, field)?),
            None => {}
        }
    }
    let metadata = metadata.ok_or_else(|| {
        Error::new(input.ident.span(), "a projection has a field `metadata: ObjectMeta`")
    })?;
    Ok(Input { kind, metadata, fields })
}

fn read_field(name: &Ident, field: &syn::Field) -> Result<Field> {
    let values = values(&field.attrs)?;
    if let Some(kind) = values.kind {
        return Err(Error::new(kind.span(), "`kind` belongs to the struct"));
    }
    let text = values.path.ok_or_else(|| {
        Error::new(name.span(), "name the field: `#[projection(path = \"spec.nodeName\")]`")
    })?;
    let path: Vec<String> = text.value().split('.').map(str::to_owned).collect();
    if path.iter().any(String::is_empty) {
        return Err(Error::new(text.span(), "a path is a list of names with dots between them"));
    }
    if path[0] == "metadata" {
        return Err(Error::new(text.span(), "the field `metadata` has all metadata"));
    }
    Ok(Field { name: name.clone(), of: field.ty.clone(), path, text, with: values.with })
}

/// Reads all `#[projection(…)]` of an item.
fn values(attributes: &[Attribute]) -> Result<Values> {
    let mut values = Values::default();
    for attribute in attributes.iter().filter(|it| it.path().is_ident("projection")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("kind") {
                values.kind = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("path") {
                values.path = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("with") {
                values.with = Some(meta.value()?.parse()?);
            } else {
                return Err(meta.error("expected `kind`, `path` or `with`"));
            }
            Ok(())
        })?;
    }
    Ok(values)
}
