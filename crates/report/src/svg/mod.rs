//! A thin drawing layer: a canvas that escapes, scales and axes. Coordinates are CSS pixels.

mod axis;
mod canvas;
mod scale;

pub(crate) use axis::{Axis, SideAxis};
pub(crate) use canvas::{Anchor, Canvas, Point, Rect, at, fit, number, text_width, wrapped};
pub(crate) use scale::Scale;
