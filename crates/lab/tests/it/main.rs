//! The lab on the real kernel: as the user who runs the tests and, where that is root, as an ordinary user too.
//!
//! A test that cannot have namespaces fails, unless H123_NO_NAMESPACES=1 says that there are none to be had.

mod measure;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Err(missing) = lab::enter() {
        eprintln!("{missing}");
        return ExitCode::FAILURE;
    }
    measure::measure();
    ExitCode::SUCCESS
}
