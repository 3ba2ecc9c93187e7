//! Unix sockets of a data directory: where they are, and who may connect (the owner alone).

use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

/// Longest path of a socket: `sun_path` has 108 bytes on Linux, 104 on macOS, the last one a zero.
const MAX_PATH: usize = 103;

/// The file of a data directory that says where a socket is.
fn address_file(data_dir: &Path, name: &str) -> PathBuf {
    data_dir.join(format!("{name}.socket.path"))
}

/// Where the socket of a name is; an error where no server has made one.
pub fn find(data_dir: &Path, name: &str) -> std::io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let path = std::fs::read(address_file(data_dir, name))?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(path)))
}

/// A bound socket; it is removed when this is dropped.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// A folder of its own, where the data directory's path is too long for a socket.
    folder: Option<PathBuf>,
}

impl Socket {
    /// Binds a socket of a data directory, which the caller has locked, and writes down where it is.
    pub fn bind(data_dir: &Path, name: &str, temporary: &Path) -> std::io::Result<Self> {
        let data_dir = data_dir.canonicalize()?;
        let file = format!("{name}.socket");
        let mut path = data_dir.join(&file);
        let mut folder = None;
        if path.as_os_str().len() > MAX_PATH {
            let own = format!(
                "cuebook-{:016x}",
                getrandom::u64().map_err(std::io::Error::other)?
            );
            let short = temporary.join(own);
            private_folder(&short)?;
            path = short.join(&file);
            folder = Some(short);
        }
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        private(&path)?;
        let address = address_file(&data_dir, name);
        let written = address.with_extension("path.new");
        std::fs::write(&written, path.as_os_str().as_encoded_bytes())?;
        std::fs::rename(&written, address)?;
        Ok(Self {
            listener,
            path,
            folder,
        })
    }

    /// What accepts connections.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

fn private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

/// Whoever may connect acts as the owner of the data directory: nobody else may.
fn private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}
