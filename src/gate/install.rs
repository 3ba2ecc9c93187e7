//! Puts the hooks where git looks for them.

use std::io;
use std::path::{Path, PathBuf};

use super::wire::Hook;

/// The hooks there are.
const HOOKS: [Hook; 3] = [Hook::PreReceive, Hook::ProcReceive, Hook::PostReceive];

/// Writes the hooks of a data directory, which run `program`; returns their folder. Scripts and no links: git passes
/// over a link that leads nowhere, and a push would go unchecked after the program has moved.
pub fn install(data_dir: &Path, program: &Path) -> io::Result<PathBuf> {
    let data_dir = data_dir.canonicalize()?;
    let folder = data_dir.join("hooks");
    std::fs::create_dir_all(&folder)?;
    for hook in HOOKS {
        let text = format!(
            "#!/bin/sh\n# Written by `cuebook serve` at every start.\nexec {} hook run {} --data-dir {}\n",
            quoted(program),
            hook.name(),
            quoted(&data_dir)
        );
        let path = folder.join(hook.name());
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) && can_run(&path) {
            continue;
        }
        let new = folder.join(format!("{}.new", hook.name()));
        std::fs::write(&new, text)?;
        executable(&new)?;
        std::fs::rename(&new, &path)?;
    }
    Ok(folder)
}

/// The first hook of a folder that git would pass over without a word, because it is not there or cannot be run (it
/// has lost its mode, its file system is mounted `noexec`).
pub fn passed_over(folder: &Path) -> Option<PathBuf> {
    HOOKS
        .iter()
        .map(|hook| folder.join(hook.name()))
        .find(|path| !can_run(path))
}

#[cfg(unix)]
fn can_run(path: &Path) -> bool {
    // what git itself asks
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn can_run(path: &Path) -> bool {
    path.is_file()
}

/// A path as a shell reads it.
pub fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

/// Lets a file be run.
pub fn executable(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
