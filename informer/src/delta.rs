//! What the reflector tells the store: [`Delta`].

use crate::{
    list_watch::Decoded,
    object::{Object, ResourceVersion},
};

/// One step of the copy towards the server.
pub(crate) enum Delta<K: Object> {
    /// The whole state, from a list: what is not in it is gone.
    Replaced { objects: Vec<Decoded<K>>, resource_version: ResourceVersion },
    /// An object was made or changed.
    Applied(Decoded<K>),
    /// An object is gone; its final state.
    Deleted(Decoded<K>),
    /// The server has got this far.
    Bookmark(ResourceVersion),
}
