use super::*;
use alloc::string::ToString;

#[test]
fn hypercall_results() {
    assert_eq!(Errno::check(0), Ok(0));
    assert_eq!(Errno::check(0x0004_0011), Ok(0x0004_0011));
    assert_eq!(Errno::check(-38), Err(Errno::ENOSYS));
    assert_eq!(Errno::check(-4096), Err(Errno::EOVERFLOW));
    assert_eq!(Errno::check(i64::MIN), Err(Errno::EOVERFLOW));
}

#[test]
fn names_both_ways() {
    assert_eq!(Errno::from_name("EAGAIN"), Some(Errno::EAGAIN));
    assert_eq!(Errno::from_name("EWHAT"), None);
    assert_eq!(Errno::ETIME.to_string(), "ETIME");
    assert_eq!(Errno(4000).to_string(), "errno 4000");
}
