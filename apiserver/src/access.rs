//! Users, tokens and the rules of RBAC, as pure functions.

mod rules;
mod tokens;
mod user;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use parking_lot::Mutex;

pub use user::User;

pub(crate) use rules::{Attributes, Binding, PolicyRule, Role, RoleRef, missing_rights, quoted};
pub(crate) use tokens::{Account, Bound, Named, Owner, Validity};

use tokens::Tokens;

/// The group of roles and bindings.
pub(crate) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The most users whose mode of impersonation is remembered, as in upstream. Beyond that all are
/// forgotten: then the modes are tried in their own order.
const MODES: usize = 10_000;

/// The issuer of tokens by default, and their audience.
const ISSUER: &str = "https://kubernetes.default.svc";

/// The issuer of the tokens of service accounts.
#[derive(Debug)]
struct Issuer {
    name: String,
    /// The audiences of which a token for the server itself needs one.
    audiences: Vec<String>,
}

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
    tokens: Mutex<Tokens>,
    /// The mode in which each user has impersonated last, by user name: as its number.
    modes: Mutex<HashMap<String, usize>>,
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

// === impl Issuer ===

impl Issuer {
    /// Without audiences the issuer is the audience, as in upstream.
    fn new(name: Option<String>, audiences: Vec<String>) -> Self {
        let name = name.unwrap_or_else(|| ISSUER.to_owned());
        let audiences = if audiences.is_empty() { vec![name.clone()] } else { audiences };
        Self { name, audiences }
    }
}

// === impl Access ===

impl Access {
    pub(crate) fn new() -> Self {
        Self {
            authenticates: AtomicBool::new(false),
            is_enforced: AtomicBool::new(false),
            refuses_anonymous: AtomicBool::new(false),
            issuer: OnceLock::new(),
            tokens: Mutex::default(),
            modes: Mutex::default(),
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

    /// Names the issuer of tokens, and the audiences of the server itself. Has no effect once a
    /// token was issued or read.
    pub(crate) fn set_issuer(&self, name: Option<String>, audiences: Vec<String>) {
        self.issuer.get_or_init(|| Issuer::new(name, audiences));
    }

    fn issuer_of_tokens(&self) -> &Issuer {
        self.issuer.get_or_init(|| Issuer::new(None, Vec::new()))
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.issuer_of_tokens().name
    }

    /// Returns the audiences of the server itself.
    pub(crate) fn audiences(&self) -> &[String] {
        &self.issuer_of_tokens().audiences
    }

    /// Accepts a token as that of a user.
    pub(crate) fn accept(&self, token: String, user: User) {
        self.tokens.lock().accept(token, user);
    }

    /// Issues a token for a user.
    pub(crate) fn issue(&self, user: User) -> String {
        self.tokens.lock().issue(user)
    }

    /// Issues a token for a service account.
    pub(crate) fn issue_for(&self, account: Account, validity: Validity) -> String {
        self.tokens.lock().issue_for(self.issuer(), account, validity)
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

    /// Returns the owner of a token, if the token is valid.
    pub(crate) fn owner(&self, token: &str, now: Timestamp) -> Option<Owner> {
        self.tokens.lock().owner(token, now)
    }
}
