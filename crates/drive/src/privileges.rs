//! What this process may do with users, and programs that must not be root.

use std::fs;

/// The user that has no rights.
const NOBODY: u32 = 65_534;

/// This process's privileges to change users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privileges {
    /// Root of the machine.
    Root,
    /// Root inside a user namespace, where no program can change its user or groups (user_namespaces(7)).
    RootOfUserNamespace,
    /// Another user.
    User,
}

impl Privileges {
    pub(crate) fn of_this_process() -> Self {
        let may_change_groups =
            fs::read_to_string("/proc/self/setgroups").is_ok_and(|setgroups| setgroups.trim() == "allow");
        match (rustix::process::geteuid().is_root(), may_change_groups) {
            (true, true) => Privileges::Root,
            (true, false) => Privileges::RootOfUserNamespace,
            (false, _) => Privileges::User,
        }
    }
}

/// The command that runs a program in a user namespace in which it is not root, so that it does not drop
/// privileges. For file permissions that user is still the one outside.
pub(crate) fn as_nobody() -> [String; 5] {
    let map = |what: &str| format!("--map-{what}={NOBODY}");
    ["unshare".to_owned(), "--user".to_owned(), map("user"), map("group"), "--".to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_a_user_namespace_becomes_nobody() {
        assert_eq!(as_nobody().join(" "), "unshare --user --map-user=65534 --map-group=65534 --");
    }
}
