//! The forms of keys in files: PKCS#1, SEC 1 and PKCS#8 for private keys, and those of public keys,
//! alone and in certificates. No number of a key is checked here.

use super::certificate::Certificate;
use super::der::{
    BIT_STRING, NULL, OBJECT_ID, OCTET_STRING, Reader, SEQUENCE, context, encode, encode_number,
};

/// A private key.
#[derive(Debug)]
pub(super) enum PrivateForm<'a> {
    /// An RSA key, in PKCS#1.
    Rsa(&'a [u8]),
    Ecdsa {
        /// The identifier of the curve.
        curve: &'a [u8],
        secret: &'a [u8],
        /// The public part, which a file may leave out.
        point: Option<&'a [u8]>,
    },
}

/// A public key.
#[derive(Debug)]
pub(super) enum PublicForm<'a> {
    /// An RSA key: the sequence of its numbers.
    Rsa(Vec<u8>),
    Ecdsa {
        /// The identifier of the curve.
        curve: &'a [u8],
        /// The public part. It is missing if a private key leaves it out.
        point: Option<&'a [u8]>,
    },
}

/// The identifiers of algorithms, without tag and length.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];

/// The tag of an uncompressed point.
const UNCOMPRESSED: u8 = 0x04;

// === impl PrivateForm ===

impl<'a> PrivateForm<'a> {
    /// Reads an RSA key in PKCS#1.
    pub(super) fn pkcs1(bytes: &'a [u8]) -> Option<Self> {
        rsa_numbers(bytes).map(|_| Self::Rsa(bytes))
    }

    /// Reads an ECDSA key in the form of SEC 1.
    pub(super) fn sec1(bytes: &'a [u8]) -> Option<Self> {
        Self::sec1_of(None, bytes)
    }

    /// Reads an RSA or ECDSA key in PKCS#8.
    pub(super) fn pkcs8(bytes: &'a [u8]) -> Option<Self> {
        let mut info = Reader::of_sequence(bytes)?;
        info.take_version()?;
        let (algorithm, curve) = take_algorithm(&mut info)?;
        let key = info.take(OCTET_STRING)?;
        match algorithm {
            RSA => Self::pkcs1(key),
            ECDSA => Self::sec1_of(Some(curve?), key),
            _ => None,
        }
    }

    /// Reads an ECDSA key whose curve may stand around it.
    fn sec1_of(curve: Option<&'a [u8]>, bytes: &'a [u8]) -> Option<Self> {
        let mut key = Reader::of_sequence(bytes)?;
        key.take_version()?;
        let secret = key.take(OCTET_STRING)?;
        let named = key.take(context(0)).and_then(|inner| Reader::new(inner).take(OBJECT_ID));
        let point = key.take(context(1)).and_then(|inner| Reader::new(inner).take_bit_string());
        let point = point.filter(|point| point.first() == Some(&UNCOMPRESSED));
        Some(Self::Ecdsa { curve: curve.or(named)?, secret, point })
    }

    /// Returns the public part of a key.
    pub(super) fn public(&self) -> Option<PublicForm<'a>> {
        match *self {
            Self::Rsa(bytes) => rsa_numbers(bytes).map(PublicForm::Rsa),
            Self::Ecdsa { curve, point, .. } => Some(PublicForm::Ecdsa { curve, point }),
        }
    }
}

/// Returns the numbers of the public part of an RSA key in PKCS#1, as a sequence.
fn rsa_numbers(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut key = Reader::of_sequence(bytes)?;
    key.take_version()?;
    let [modulus, exponent] = [key.take_number()?, key.take_number()?];
    Some(encode(SEQUENCE, &[encode_number(modulus), encode_number(exponent)].concat()))
}

// === impl PublicForm ===

impl<'a> PublicForm<'a> {
    /// Reads a public key, or that of a certificate.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        Self::of_info(bytes).or_else(|| Self::of_info(Certificate::read(bytes)?.key))
    }

    fn of_info(bytes: &'a [u8]) -> Option<Self> {
        let mut info = Reader::of_sequence(bytes)?;
        let (algorithm, curve) = take_algorithm(&mut info)?;
        let key = info.take_bit_string()?;
        match algorithm {
            RSA => {
                let mut numbers = Reader::of_sequence(key)?;
                numbers.take_number()?;
                numbers.take_number()?;
                Some(Self::Rsa(key.to_vec()))
            }
            ECDSA if key.first() == Some(&UNCOMPRESSED) => {
                Some(Self::Ecdsa { curve: curve?, point: Some(key) })
            }
            _ => None,
        }
    }
}

/// Takes the identifier of an algorithm and, if there is one, that of a curve.
fn take_algorithm<'a>(values: &mut Reader<'a>) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let mut algorithm = Reader::new(values.take(SEQUENCE)?);
    Some((algorithm.take(OBJECT_ID)?, algorithm.take(OBJECT_ID)))
}

// === public keys in their standard form ===

/// Returns the standard form of an RSA key, which a key's identifier is a hash of.
pub(super) fn info_of_rsa(numbers: &[u8]) -> Vec<u8> {
    info(RSA, &encode(NULL, &[]), numbers)
}

/// Returns the standard form of an ECDSA key.
pub(super) fn info_of_ecdsa(curve: &[u8], point: &[u8]) -> Vec<u8> {
    info(ECDSA, &encode(OBJECT_ID, curve), point)
}

fn info(algorithm: &[u8], parameters: &[u8], key: &[u8]) -> Vec<u8> {
    let algorithm = [&encode(OBJECT_ID, algorithm), parameters].concat();
    let key = encode(BIT_STRING, &[&[0], key].concat());
    encode(SEQUENCE, &[encode(SEQUENCE, &algorithm), key].concat())
}
