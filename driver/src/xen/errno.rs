//! Xen's error numbers.

use core::fmt;

/// Why Xen or xenstored refused (`errno.h` of the public headers; the numbers are Linux's).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

macro_rules! errnos {
    ($($name:ident = $number:literal, $meaning:literal;)*) => {
        impl Errno {
            $(
                #[doc = $meaning]
                pub const $name: Self = Self($number);
            )*

            /// The symbolic name, or `None` for a number that the public headers don't have.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            /// The error with this symbolic name, as xenstored sends it.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($name) => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    EPERM = 1, "Operation not permitted.";
    ENOENT = 2, "No such entry.";
    ESRCH = 3, "No such domain or vCPU.";
    EINTR = 4, "Interrupted.";
    EIO = 5, "I/O error.";
    ENXIO = 6, "No such device or address.";
    E2BIG = 7, "Argument too big.";
    ENOEXEC = 8, "Not an executable.";
    EBADF = 9, "Bad handle.";
    ECHILD = 10, "No child.";
    EAGAIN = 11, "Try again.";
    ENOMEM = 12, "Out of memory.";
    EACCES = 13, "Permission denied.";
    EFAULT = 14, "Bad address: an argument was not readable by Xen.";
    EBUSY = 16, "Busy.";
    EEXIST = 17, "Exists already.";
    EXDEV = 18, "Cross-device.";
    ENODEV = 19, "No such device.";
    ENOTDIR = 20, "Not a directory.";
    EISDIR = 21, "Is a directory.";
    EINVAL = 22, "Invalid argument.";
    ENFILE = 23, "Table overflow.";
    EMFILE = 24, "Too many open.";
    ENOSPC = 28, "No space left: no free event channel port, for example.";
    EROFS = 30, "Read-only.";
    EMLINK = 31, "Too many links.";
    EDOM = 33, "Argument out of domain.";
    ERANGE = 34, "Out of range.";
    EDEADLK = 35, "Would deadlock.";
    ENAMETOOLONG = 36, "Name too long.";
    ENOLCK = 37, "No locks.";
    ENOSYS = 38, "Not implemented by this hypervisor.";
    ENOTEMPTY = 39, "Not empty.";
    ENODATA = 61, "No data.";
    ETIME = 62, "Time passed already.";
    EILSEQ = 84, "Illegal sequence.";
    EOVERFLOW = 75, "Value too large.";
    EOPNOTSUPP = 95, "Operation not supported.";
    EADDRINUSE = 98, "Address in use.";
    EADDRNOTAVAIL = 99, "Address not available.";
    ENOBUFS = 105, "No buffers.";
    EISCONN = 106, "Connected already.";
    ENOTCONN = 107, "Not connected.";
    ETIMEDOUT = 110, "Timed out.";
    ECONNREFUSED = 111, "Connection refused.";
}

impl Errno {
    /// A hypercall's result as `Ok(value)`, or as the error that a negative one stands for.
    pub const fn check(result: i64) -> Result<u64, Self> {
        if result >= 0 {
            Ok(result as u64)
        } else if result >= -4095 {
            Err(Self(-result as i32))
        } else {
            // Outside the range of error numbers: no hypercall returns this.
            Err(Self::EOVERFLOW)
        }
    }

    /// The positive number.
    pub const fn number(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Errno {}

#[cfg(test)]
mod tests;
