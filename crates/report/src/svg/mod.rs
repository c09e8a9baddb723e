//! A thin drawing layer: a canvas that escapes text, scales and axes. Coordinates are CSS pixels.

mod axis;
mod canvas;
mod scale;

pub(crate) use axis::{Axis, SideAxis};
pub(crate) use canvas::{Anchor, Canvas, Point, Rect, at, fit, number, text_width, wrapped};
pub(crate) use model::number::{count, float};
pub(crate) use scale::Scale;

/// The width of every panel: readable on a phone of 390 pixels, two side by side on a desktop.
pub(crate) const WIDTH: f64 = 400.0;
/// Font size of tick labels and axis titles.
pub(crate) const TICK_SIZE: f64 = 11.5;
/// Font size of labels.
pub(crate) const LABEL_SIZE: f64 = 12.5;
/// Font size of headings.
pub(crate) const HEADING_SIZE: f64 = 14.5;
/// How much wider bold letters are.
pub(crate) const BOLD: f64 = 1.12;
