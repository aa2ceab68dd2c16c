//! Users, tokens and the rules of RBAC, as pure functions.

mod bindings;
mod certificate;
mod der;
mod issuer;
mod key_forms;
mod public_key;
mod rules;
mod signing_key;
mod tokens;
mod user;
mod web_token;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

pub use public_key::{KeyError, PublicKey};
pub use signing_key::SigningKey;
pub use user::User;

pub(crate) use bindings::{Binding, RoleRef};
pub(crate) use certificate::{Certificate, is_malformed, requested_key};
pub(crate) use issuer::{Issuer, TokenSettings, Validity, Verified};
pub(crate) use rules::{Attributes, Names, PolicyRule, Role, missing_rights, quoted};
pub(crate) use web_token::{Claims, Holder, Named, SecretClaims};

use tokens::Tokens;

/// The group of roles and bindings.
pub(crate) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The most users whose mode of impersonation is remembered, as in upstream. Beyond that all are
/// forgotten: then the modes are tried in their own order.
const MODES: usize = 10_000;

/// The access control of one server.
#[derive(Debug)]
pub(crate) struct Access {
    /// True if the credentials of a request over a connection name its user.
    authenticates: AtomicBool,
    /// True if each request is checked against roles and bindings.
    is_enforced: AtomicBool,
    /// True if a request over a connection needs credentials.
    refuses_anonymous: AtomicBool,
    issuer: OnceLock<Issuer>,
    /// The address of the first listener with TLS.
    address: OnceLock<SocketAddr>,
    tokens: Mutex<Tokens>,
    /// The mode in which each user has impersonated last, by user name: as its number.
    modes: Mutex<HashMap<String, usize>>,
    /// The certificates of the authorities of clients, in PEM.
    trusted: Mutex<String>,
    admin: Arc<User>,
}

/// The origin of a request: an extension of it.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// A client in this process, which acts for this user.
    InProcess(Arc<User>),
    /// A connection: the request's token names the user.
    Network,
}

/// The client certificate of a connection: an extension of its requests.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS has certificates"))]
pub(crate) enum ClientCertificate {
    /// The certificate of this user.
    Valid(Arc<User>),
    /// A certificate of another authority, or one that has expired.
    Invalid,
}

// === impl Access ===

impl Access {
    pub(crate) fn new() -> Self {
        Self {
            authenticates: AtomicBool::new(false),
            is_enforced: AtomicBool::new(false),
            refuses_anonymous: AtomicBool::new(false),
            issuer: OnceLock::new(),
            address: OnceLock::new(),
            tokens: Mutex::default(),
            modes: Mutex::default(),
            trusted: Mutex::default(),
            admin: Arc::new(User::admin()),
        }
    }

    /// Takes the user of each request from its credentials from now on.
    pub(crate) fn authenticate(&self) {
        self.authenticates.store(true, Ordering::Relaxed);
    }

    pub(crate) fn authenticates(&self) -> bool {
        self.authenticates.load(Ordering::Relaxed)
    }

    /// Checks each request against roles and bindings from now on.
    pub(crate) fn enforce(&self) {
        self.authenticate();
        self.is_enforced.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_enforced(&self) -> bool {
        self.is_enforced.load(Ordering::Relaxed)
    }

    /// Refuses requests without credentials from now on, if credentials name the users.
    pub(crate) fn refuse_anonymous(&self) {
        self.refuses_anonymous.store(true, Ordering::Relaxed);
    }

    /// Returns the user of requests without credentials, if credentials name the users; `None` if
    /// such requests are refused. They are if every user may do everything.
    pub(crate) fn anonymous(&self) -> Option<Arc<User>> {
        let is_refused = self.refuses_anonymous.load(Ordering::Relaxed);
        (self.is_enforced() && !is_refused).then(|| Arc::new(User::anonymous()))
    }

    /// Returns the user of requests, if credentials do not name them.
    pub(crate) fn admin(&self) -> Arc<User> {
        Arc::clone(&self.admin)
    }

    /// Sets how tokens of service accounts are issued and accepted. Has no effect once a token was
    /// issued or read.
    pub(crate) fn configure(&self, settings: TokenSettings) {
        self.issuer.get_or_init(|| Issuer::new(settings));
    }

    /// Returns the issuer of the tokens of service accounts.
    pub(crate) fn issuer(&self) -> &Issuer {
        self.issuer.get_or_init(|| Issuer::new(TokenSettings::default()))
    }

    /// Sets the address that the server has for its clients, if it has none yet.
    #[cfg(feature = "tls")]
    pub(crate) fn set_address(&self, address: SocketAddr) {
        self.address.get_or_init(|| address);
    }

    /// Accepts clients with certificates of these authorities, which are in PEM.
    pub(crate) fn trust(&self, authorities: &str) {
        self.trusted.lock().push_str(authorities);
    }

    /// Returns the certificates of the authorities of clients, in PEM.
    pub(crate) fn trusted(&self) -> String {
        self.trusted.lock().clone()
    }

    /// Returns the address that the server has for its clients, if any.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address.get().copied()
    }

    /// Accepts a token as that of a user.
    pub(crate) fn accept(&self, token: String, user: User) {
        self.tokens.lock().accept(token, user);
    }

    /// Issues a token for a user.
    pub(crate) fn issue(&self, user: User) -> String {
        self.tokens.lock().issue(user)
    }

    /// Returns the number of the mode in which a user has impersonated last.
    pub(crate) fn last_mode(&self, user: &str) -> Option<usize> {
        self.modes.lock().get(user).copied()
    }

    pub(crate) fn remember_mode(&self, user: &str, mode: usize) {
        let mut modes = self.modes.lock();
        if modes.len() >= MODES {
            modes.clear();
        }
        modes.insert(user.to_owned(), mode);
    }

    /// Returns the user that the owner of the server gave a token.
    pub(crate) fn user_of(&self, token: &str) -> Option<Arc<User>> {
        self.tokens.lock().user(token)
    }
}
