//! The list-watch of an informer: one collection or several, pages or one piece, pruned or not.

use homeostat::informer::list_watch::{KubeListWatch, MergedListWatch};
use homeostat::informer::{InformerBuilder, SharedIndexInformer};
use homeostat::kube_client::Client;

use super::SELECTOR;
use super::dice::Dice;
use super::weight::Weight;
use super::workload::NAMESPACES;

/// The settings of a list-watch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// True for one collection per namespace instead of one of all namespaces.
    pub(super) merges: bool,
    /// True if `data.note` is left out.
    pub(super) prunes: bool,
    /// Objects per page of a list; 0 for a list in one piece.
    page_size: u32,
    watch_list: bool,
}

// === impl Source ===

impl Source {
    pub(super) fn any(dice: &mut Dice) -> Self {
        Self {
            merges: dice.one_in(4),
            prunes: dice.one_in(3),
            page_size: dice.pick(&[0, 1, 3, 500]),
            watch_list: dice.one_in(2),
        }
    }

    /// Returns the settings of an informer of the objects with the label.
    pub(super) fn builder<K: Weight>(self, client: &Client) -> InformerBuilder<K> {
        let collection = |namespace: Option<&str>| {
            let objects = KubeListWatch::<K>::new(client.clone(), namespace);
            let objects = objects.label_selector(SELECTOR);
            if self.prunes { objects.prune(["data.note"]) } else { objects }
        };
        let builder = if self.merges {
            let parts = NAMESPACES.map(|namespace| collection(Some(namespace)));
            SharedIndexInformer::builder(MergedListWatch::new(parts))
        } else {
            SharedIndexInformer::builder(collection(None))
        };
        builder.watch_list(self.watch_list).page_size(self.page_size)
    }

    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        let is_one_piece = self.page_size == 0 && !self.watch_list;
        let names = [
            (self.merges, "several namespaces"),
            (self.prunes, "pruned"),
            (is_one_piece, "lists in one piece"),
        ];
        names.into_iter().filter_map(|(is_so, name)| is_so.then_some(name))
    }
}
