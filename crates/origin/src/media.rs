//! Media: segments that are modelled, live streams, and segments cut out of archives.

mod archive_part;
mod indexes;
mod just_in_time;
mod live;
mod modelled;

pub(crate) use just_in_time::Cutter;
pub(crate) use modelled::ModelledMedia;
