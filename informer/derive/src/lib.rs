//! The derive macro `Projection`: a cached type from the paths of the fields that an author reads.
//!
//! Use it through `homeostat_informer` or `homeostat`, which re-export it beside the trait that it
//! implements. The trait's page describes the attributes.

use proc_macro::TokenStream;
use quote::quote;
use syn::{DeriveInput, parse_macro_input};

mod expand;
mod fields;
mod tree;

/// Implements `Object`, `Projection` and `Deserialize` with the paths of `homeostat_informer`.
#[proc_macro_derive(Projection, attributes(projection))]
pub fn projection(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let expanded = expand::expand(&input, &quote!(::homeostat_informer));
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements the same with the paths of the facade, `homeostat`.
#[proc_macro_derive(FacadeProjection, attributes(projection))]
pub fn facade_projection(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let expanded = expand::expand(&input, &quote!(::homeostat::informer));
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
