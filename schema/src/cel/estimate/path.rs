//! The path of a value in the bounds of a schema.

use std::cell::RefCell;
use std::rc::Rc;

use super::size::Size;
use crate::cel::bounds::Bounds;

/// The path of a value below a variable of the expression; empty for a computed value.
///
/// Paths share memory as Go's slices do: a path that is extended twice in the same memory shows the
/// last step in both. Upstream's costs depend on that: `list.all(x, x.a.all(y, y == x.b))` counts
/// the rounds over `x.a` by the bounds of `x.b`.
#[derive(Debug, Clone)]
pub(super) struct Path<'a> {
    steps: Rc<RefCell<Steps<'a>>>,
    length: usize,
}

#[derive(Debug, Default)]
struct Steps<'a> {
    /// The first step is the variable.
    list: Vec<Step<'a>>,
    capacity: usize,
}

/// A step to a part of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    Field(&'a str),
    /// An item of a list or a value of a map.
    Inner,
    /// A key of a map.
    Key,
    /// An index of a list.
    Index,
}

// === impl Path ===

impl<'a> Path<'a> {
    pub(super) fn computed() -> Self {
        Self { steps: Rc::default(), length: 0 }
    }

    /// Returns the path of a part. The first step of a computed value stands for a variable.
    pub(super) fn step(&self, step: Step<'a>) -> Self {
        let mut steps = self.steps.borrow_mut();
        if self.length < steps.capacity {
            if let Some(last) = steps.list.get_mut(self.length) {
                *last = step;
            } else {
                steps.list.push(step);
            }
            return Self { steps: Rc::clone(&self.steps), length: self.length + 1 };
        }
        let mut list = steps.list[..self.length].to_vec();
        list.push(step);
        let copy = Steps { list, capacity: (2 * steps.capacity).max(1) };
        Self { steps: Rc::new(RefCell::new(copy)), length: self.length + 1 }
    }

    /// Returns the size of a value at the path; `None` if the schema has no such part.
    pub(super) fn size(&self, root: &Bounds) -> Option<Size> {
        self.bounds(root).map(|bounds| Size::up_to(bounds.most))
    }

    /// Returns the size of an item of a list at the path.
    pub(super) fn item_size(&self, root: &Bounds) -> Option<Size> {
        self.bounds(root)?.inner().map(|bounds| Size::up_to(bounds.most))
    }

    fn bounds<'b>(&self, root: &'b Bounds) -> Option<&'b Bounds> {
        let steps = self.steps.borrow();
        let below = steps.list.get(1..self.length)?;
        below.iter().try_fold(root, |bounds, step| match step {
            Step::Field(name) => bounds.field(name),
            Step::Inner => bounds.inner(),
            Step::Key => bounds.keys(),
            Step::Index => None,
        })
    }
}
