//! Writes the implementations.
//!
//! The object is decoded through private structs, one for each member with inner members. serde
//! skips all other members while it parses, without building them.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Ident, LitStr, Result, Type};

use crate::fields::{Input, read};
use crate::tree::{Member, join};

/// The private structs, and the code that moves their members into the author's struct.
struct Code<'a> {
    /// The path of the crate that has the trait.
    crate_: &'a TokenStream,
    structs: Vec<TokenStream>,
    moves: Vec<TokenStream>,
}

/// Returns the implementations for a struct.
pub(crate) fn expand(input: &DeriveInput, crate_: &TokenStream) -> Result<TokenStream> {
    let name = &input.ident;
    let Input { kind, metadata, fields } = read(input)?;
    let members = join(&fields)?;
    let mut code = Code { crate_, structs: Vec::new(), moves: Vec::new() };
    let inner = code.members(&members, &format_ident!("Wire"), &quote!(wire));
    let deserialize = deserialize(name, &metadata, &inner, &code);
    let paths = fields.iter().map(|field| &field.text);
    Ok(quote! {
        #[automatically_derived]
        impl #crate_::Object for #name {
            type Kind = #kind;

            fn metadata(&self) -> &#crate_::ObjectMeta {
                &self.metadata
            }
        }

        #[automatically_derived]
        impl #crate_::Projection for #name {
            const PATHS: &'static [&'static str] = &["metadata", #(#paths),*];
        }

        #deserialize
    })
}

/// Returns the private structs, and the implementation of `Deserialize` for `name` with them.
/// `fields` are those of the outermost struct, without the metadata.
fn deserialize(
    name: &Ident,
    metadata: &Type,
    fields: &[TokenStream],
    code: &Code<'_>,
) -> TokenStream {
    let Code { crate_, structs, moves } = code;
    let serde = LitStr::new(&quote!(#crate_::__private::serde).to_string(), name.span());
    quote! {
        const _: () = {
            #(#structs)*

            #[derive(#crate_::__private::serde::Deserialize)]
            #[serde(crate = #serde)]
            struct Wire {
                metadata: #metadata,
                #(#fields)*
            }

            #[automatically_derived]
            impl<'de> #crate_::__private::serde::Deserialize<'de> for #name {
                fn deserialize<D>(deserializer: D) -> ::core::result::Result<Self, D::Error>
                where
                    D: #crate_::__private::serde::Deserializer<'de>,
                {
                    let wire: Wire =
                        #crate_::__private::serde::Deserialize::deserialize(deserializer)?;
                    ::core::result::Result::Ok(Self { metadata: wire.metadata, #(#moves)* })
                }
            }
        };
    }
}

// === impl Code ===

impl Code<'_> {
    /// Returns the fields of the private struct `of`, whose value is `value`.
    fn members(
        &mut self,
        members: &BTreeMap<&str, Member<'_>>,
        of: &Ident,
        value: &TokenStream,
    ) -> Vec<TokenStream> {
        let crate_ = self.crate_;
        let null_is_default = quote!(#crate_::__private::null_is_default).to_string();
        let mut fields = Vec::new();
        for (number, (json, member)) in members.iter().enumerate() {
            let name = format_ident!("member_{number}");
            let (type_, with) = match member {
                Member::Field(field) => {
                    let field_name = &field.name;
                    self.moves.push(quote!(#field_name: #value.#name,));
                    let of = &field.of;
                    (quote!(#of), field.with.as_ref().map(|with| quote!(#with).to_string()))
                }
                Member::Inner(inner) => {
                    let struct_ = format_ident!("{of}{number}");
                    let inner = self.members(inner, &struct_, &quote!(#value.#name));
                    self.inner_struct(&struct_, &inner);
                    (quote!(#struct_), None)
                }
            };
            let with = with.unwrap_or_else(|| null_is_default.clone());
            fields.push(quote! {
                #[serde(rename = #json, default, deserialize_with = #with)]
                #name: #type_,
            });
        }
        fields
    }

    fn inner_struct(&mut self, name: &Ident, fields: &[TokenStream]) {
        let crate_ = self.crate_;
        let serde = quote!(#crate_::__private::serde).to_string();
        self.structs.push(quote! {
            #[derive(::core::default::Default, #crate_::__private::serde::Deserialize)]
            #[serde(crate = #serde)]
            struct #name {
                #(#fields)*
            }
        });
    }
}
