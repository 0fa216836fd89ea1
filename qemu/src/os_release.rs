//! The host's release and the packages that go with it.

use anyhow::{Context, Result, bail};

/// A Debian release the rig knows a working set of packages for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Release {
    /// Debian 12: Xen 4.17, Linux 6.1, QEMU 7.2.
    Bookworm,
    /// Debian 13: Xen 4.20, Linux 6.12, QEMU 10.0.
    Trixie,
}

impl Release {
    /// The host's release, from `/etc/os-release`.
    pub(crate) fn of_host() -> Result<Self> {
        let text = std::fs::read_to_string("/etc/os-release").context(
            "cannot read /etc/os-release: expected Debian 12 or 13; elsewhere give --xen, \
             --kernel, --modules and --tools",
        )?;
        Self::parse(&text)
    }

    /// Reads the text of an os-release file.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let field = |name: &str| {
            text.lines()
                .filter_map(|line| line.trim().split_once('='))
                .find(|(key, _)| *key == name)
                .map_or("", |(_, value)| value.trim_matches(['"', '\'']))
        };
        match (field("ID"), field("VERSION_ID")) {
            ("debian", "12") => Ok(Self::Bookworm),
            ("debian", "13") => Ok(Self::Trixie),
            (id, version) => bail!(
                "expected Debian 12 or 13, found ID `{id}` VERSION_ID `{version}`: give --xen, \
                 --kernel, --modules and --tools"
            ),
        }
    }

    /// The name of the rig's folder for this release's files.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Bookworm => "debian-12",
            Self::Trixie => "debian-13",
        }
    }

    /// Xen's version in package names.
    pub(crate) fn xen(self) -> &'static str {
        match self {
            Self::Bookworm => "4.17",
            Self::Trixie => "4.20",
        }
    }
}

#[cfg(test)]
mod tests;
