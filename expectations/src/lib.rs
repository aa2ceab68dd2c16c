//! Expectations of a controller.
