use super::*;

const SHORT: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(5);

fn channel() -> (Channel, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    (Channel::start(near, None).unwrap(), far)
}

#[test]
fn lines_arrive_whole_and_in_order() {
    let (mut channel, mut far) = channel();
    far.write_all(b"one\r\ntw").unwrap();
    assert_eq!(channel.line(LONG).as_deref(), Some("one"));
    assert_eq!(channel.line(SHORT), None);
    far.write_all(b"o\n").unwrap();
    assert_eq!(channel.line(LONG).as_deref(), Some("two"));
}

#[test]
fn waiting_ends_at_the_end_of_the_line_with_the_text() {
    let (mut channel, mut far) = channel();
    far.write_all(b"boot\npaceline ready 10.0.2.15\n> ")
        .unwrap();
    let said = channel.wait_for("ready", LONG).unwrap();
    assert_eq!(said, "boot\npaceline ready 10.0.2.15\n");
    assert_eq!(channel.wait_for("ready", SHORT), None);
}

#[test]
fn a_closed_port_ends_the_wait_at_once() {
    let (mut channel, far) = channel();
    drop(far);
    let start = Instant::now();
    assert_eq!(channel.wait_for("anything", LONG), None);
    assert!(start.elapsed() < LONG);
}

#[test]
fn what_is_sent_arrives() {
    let (mut channel, mut far) = channel();
    channel.send("help\r").unwrap();
    let mut bytes = [0; 5];
    far.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"help\r");
}

#[test]
fn text_is_found_across_reads() {
    let (mut channel, mut far) = channel();
    far.write_all(b"pan").unwrap();
    assert_eq!(channel.wait_for("panicked", SHORT), None);
    far.write_all(b"icked at x\n").unwrap();
    assert!(channel.wait_for("panicked", LONG).is_some());
}
