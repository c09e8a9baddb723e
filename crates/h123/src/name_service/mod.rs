//! The name server of labs: its process, and how studies and labs used by hand start it.

pub(crate) mod command;
pub(crate) mod lab;
pub(crate) mod study;
