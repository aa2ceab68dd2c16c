//! Base64 as Go reads it.

use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

/// Go's `base64.RawURLEncoding`: without padding, and trailing bits are ignored.
pub(crate) const RAW_URL: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));
