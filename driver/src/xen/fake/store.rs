//! A mock xenstored: serves the ring page from a tree in memory, with transactions and watches,
//! and misbehaves on demand.

mod tree;

use super::FakeXen;
use crate::xen::errno::Errno;
use crate::xen::types::EventPort;
use crate::xen::xenstore::wire::{Assembler, Header, Kind, MAX_PAYLOAD_BYTES, Message};
use crate::xen::xenstore::{ring, ring::offset};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use tree::{Tree, covers};
use zerocopy::IntoBytes;

/// The guest's own directory: relative paths are below it.
const HOME: &str = "/local/domain/1";

/// The mock xenstored; clones are the same one.
///
/// Serves the ring when [`FakeStore::run`] is called. The other methods are dom0's own access,
/// which fires the guest's watches too, and ways to misbehave.
#[derive(Clone)]
pub struct FakeStore(Rc<RefCell<Daemon>>);

struct Daemon {
    xen: FakeXen,
    page: NonNull<u8>,
    port: EventPort,
    tree: Tree,
    transactions: Vec<OpenTransaction>,
    last_tx_id: u32,
    watches: Vec<GuestWatch>,
    input: Assembler,
    output: VecDeque<u8>,
    hung: bool,
    refusals: VecDeque<Errno>,
    failing_commits: usize,
    requests: u64,
}

struct GuestWatch {
    /// As the guest gave it.
    path: String,
    token: String,
}

struct OpenTransaction {
    id: u32,
    base: Tree,
    tree: Tree,
    touched: BTreeSet<String>,
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(String, Vec<u8>),
    Remove(String),
}

impl FakeStore {
    pub(super) fn new(xen: FakeXen, page: NonNull<u8>, port: EventPort) -> Self {
        let mut tree = Tree::default();
        tree.write(&format!("{HOME}/domid"), b"1");
        Self(Rc::new(RefCell::new(Daemon {
            xen,
            page,
            port,
            tree,
            transactions: Vec::new(),
            last_tx_id: 0,
            watches: Vec::new(),
            input: Assembler::default(),
            output: VecDeque::new(),
            hung: false,
            refusals: VecDeque::new(),
            failing_commits: 0,
            requests: 0,
        })))
    }

    /// Serves the requests in the ring and sends what fits.
    pub fn run(&self) {
        self.0.borrow_mut().run();
    }

    // dom0's own access.

    /// Writes as dom0. Relative paths are in the guest's directory.
    pub fn write(&self, path: impl fmt::Display, value: impl fmt::Display) {
        let change = Change::Write(absolute(&path.to_string()), value.to_string().into_bytes());
        self.0.borrow_mut().apply(&change);
    }

    /// Reads as dom0.
    pub fn read(&self, path: impl fmt::Display) -> Option<String> {
        let daemon = self.0.borrow();
        let value = daemon.tree.read(&absolute(&path.to_string()))?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// Removes a path and all below it as dom0.
    pub fn remove(&self, path: impl fmt::Display) {
        let change = Change::Remove(absolute(&path.to_string()));
        self.0.borrow_mut().apply(&change);
    }

    /// The names below a path.
    pub fn list(&self, path: impl fmt::Display) -> Vec<String> {
        self.0.borrow().tree.list(&absolute(&path.to_string()))
    }

    /// How many watches the guest has set.
    pub fn watches(&self) -> usize {
        self.0.borrow().watches.len()
    }

    /// How many transactions the guest has open.
    pub fn open_transactions(&self) -> usize {
        self.0.borrow().transactions.len()
    }

    /// How many requests came in.
    pub fn requests(&self) -> u64 {
        self.0.borrow().requests
    }

    // Misbehaviour.

    /// Makes the next `count` commits fail with `EAGAIN`.
    pub fn fail_commits(&self, count: usize) {
        self.0.borrow_mut().failing_commits = count;
    }

    /// Refuses the next request. Several are served in order.
    pub fn refuse_next(&self, errno: Errno) {
        self.0.borrow_mut().refusals.push_back(errno);
    }

    /// Stops serving, or goes on.
    pub fn hang(&self, hung: bool) {
        self.0.borrow_mut().hung = hung;
    }

    /// Sends bytes as they are.
    pub fn inject(&self, bytes: &[u8]) {
        self.0.borrow_mut().output.extend(bytes);
    }

    /// Sends a message with a header of the test's choice: type, request, transaction, and the
    /// payload's length as it claims to be.
    pub fn inject_message(&self, kind: u32, req_id: u32, claimed_bytes: u32, payload: &[u8]) {
        let header = Header {
            kind,
            req_id,
            tx_id: 0,
            payload_bytes: claimed_bytes,
        };
        self.inject(header.as_bytes());
        self.inject(payload);
    }

    /// Moves the index of what it sent.
    pub fn set_rsp_prod(&self, value: u32) {
        self.set_word(offset::RSP_PROD, value);
    }

    /// Moves the index of what it read.
    pub fn set_req_cons(&self, value: u32) {
        self.set_word(offset::REQ_CONS, value);
    }

    /// Sets all indices, as if that many bytes had gone through the ring.
    pub fn set_all_indices(&self, value: u32) {
        for offset in [
            offset::REQ_CONS,
            offset::REQ_PROD,
            offset::RSP_CONS,
            offset::RSP_PROD,
        ] {
            self.set_word(offset, value);
        }
    }

    /// Reports an error in the ring page.
    pub fn set_ring_error(&self, code: u32) {
        self.set_word(offset::ERROR, code);
    }

    /// Offers to reconnect.
    pub fn offer_reconnection(&self) {
        self.set_word(offset::SERVER_FEATURES, ring::FEATURE_RECONNECTION);
    }

    /// Is not ready yet: the guest has to wait until it is served.
    pub fn set_connecting(&self) {
        self.set_word(offset::CONNECTION, ring::RECONNECT);
    }

    fn set_word(&self, offset: usize, value: u32) {
        self.0.borrow().word(offset).store(value, Ordering::SeqCst);
    }
}

impl Daemon {
    fn run(&mut self) {
        if self.hung {
            return;
        }
        let mut moved = self.reconnect_if_asked();
        moved |= self.receive();
        while let Ok(Some(message)) = self.input.next_message() {
            self.requests += 1;
            self.serve(&message);
        }
        moved |= self.send();
        if moved {
            // The guest may have closed the port.
            let _ = self.xen.raise(self.port);
        }
    }

    fn reconnect_if_asked(&mut self) -> bool {
        if self.word(offset::CONNECTION).load(Ordering::SeqCst) != ring::RECONNECT {
            return false;
        }
        self.transactions.clear();
        self.watches.clear();
        self.input.clear();
        self.output.clear();
        for offset in [
            offset::REQ_CONS,
            offset::REQ_PROD,
            offset::RSP_CONS,
            offset::RSP_PROD,
            offset::ERROR,
            offset::CONNECTION,
        ] {
            self.word(offset).store(0, Ordering::SeqCst);
        }
        true
    }

    fn receive(&mut self) -> bool {
        let prod = self.word(offset::REQ_PROD).load(Ordering::SeqCst);
        let mut cons = self.word(offset::REQ_CONS).load(Ordering::SeqCst);
        let available = prod.wrapping_sub(cons);
        assert!(
            available <= ring::RING_BYTES,
            "the guest moved req_prod to {prod}, req_cons is {cons}"
        );
        while cons != prod {
            // SAFETY: the offset is in the page, which lives as long as the hypervisor.
            let byte = unsafe { self.byte(offset::REQ, cons).read_volatile() };
            self.input.push(&[byte]);
            cons = cons.wrapping_add(1);
        }
        self.word(offset::REQ_CONS).store(cons, Ordering::SeqCst);
        available > 0
    }

    fn send(&mut self) -> bool {
        let cons = self.word(offset::RSP_CONS).load(Ordering::SeqCst);
        let mut prod = self.word(offset::RSP_PROD).load(Ordering::SeqCst);
        let used = prod.wrapping_sub(cons);
        let room = ring::RING_BYTES.saturating_sub(used) as usize;
        let count = self.output.len().min(room);
        if count == 0 {
            return false;
        }
        for byte in self.output.drain(..count).collect::<Vec<_>>() {
            // SAFETY: as in `receive`.
            unsafe { self.byte(offset::RSP, prod).write_volatile(byte) };
            prod = prod.wrapping_add(1);
        }
        self.word(offset::RSP_PROD).store(prod, Ordering::SeqCst);
        true
    }

    fn serve(&mut self, message: &Message) {
        let Message { header, payload } = message;
        let result = match self.refusals.pop_front() {
            Some(errno) => Err(errno),
            None => self.perform(header, payload),
        };
        match result {
            Ok(reply) => self.reply(header.kind, header, &reply),
            Err(errno) => {
                let name = format!("{errno}\0");
                self.reply(Kind::Error as u32, header, name.as_bytes());
            }
        }
        // xenstored reports a watch once as soon as it is set, after the reply.
        if header.kind == Kind::Watch as u32
            && let Some((path, token)) = fields(payload)
            && self.watches.iter().any(|w| w.token == token)
        {
            self.event(&path, &token);
        }
    }

    fn perform(&mut self, header: &Header, payload: &[u8]) -> Result<Vec<u8>, Errno> {
        let kind = header.kind;
        let is = |k: Kind| kind == k as u32;
        if is(Kind::Watch) {
            let (path, token) = fields(payload).ok_or(Errno::EINVAL)?;
            if self
                .watches
                .iter()
                .any(|w| w.path == path && w.token == token)
            {
                return Err(Errno::EEXIST);
            }
            self.watches.push(GuestWatch { path, token });
            return Ok(b"OK\0".into());
        }
        if is(Kind::Unwatch) {
            let (path, token) = fields(payload).ok_or(Errno::EINVAL)?;
            let before = self.watches.len();
            self.watches.retain(|w| w.path != path || w.token != token);
            return if self.watches.len() < before {
                Ok(b"OK\0".into())
            } else {
                Err(Errno::ENOENT)
            };
        }
        if is(Kind::TransactionStart) {
            if header.tx_id != 0 || payload != b"\0" {
                return Err(Errno::EINVAL);
            }
            self.last_tx_id += 1;
            self.transactions.push(OpenTransaction {
                id: self.last_tx_id,
                base: self.tree.clone(),
                tree: self.tree.clone(),
                touched: BTreeSet::new(),
                changes: Vec::new(),
            });
            return Ok(format!("{}\0", self.last_tx_id).into_bytes());
        }
        if is(Kind::TransactionEnd) {
            return self.end_transaction(header.tx_id, payload);
        }
        self.access(header, payload)
    }

    fn end_transaction(&mut self, id: u32, payload: &[u8]) -> Result<Vec<u8>, Errno> {
        let index = self.transactions.iter().position(|t| t.id == id);
        let transaction = self.transactions.remove(index.ok_or(Errno::ENOENT)?);
        match payload {
            b"F\0" => return Ok(b"OK\0".into()),
            b"T\0" => {}
            _ => return Err(Errno::EINVAL),
        }
        if self.failing_commits > 0 {
            self.failing_commits -= 1;
            return Err(Errno::EAGAIN);
        }
        let OpenTransaction {
            base,
            touched,
            changes,
            ..
        } = transaction;
        let conflict = touched.iter().any(|path| {
            base.read(path) != self.tree.read(path) || base.list(path) != self.tree.list(path)
        });
        if conflict {
            return Err(Errno::EAGAIN);
        }
        for change in &changes {
            self.apply(change);
        }
        Ok(b"OK\0".into())
    }

    /// Requests on a path, in a transaction or not.
    fn access(&mut self, header: &Header, payload: &[u8]) -> Result<Vec<u8>, Errno> {
        let kind = header.kind;
        let is = |k: Kind| kind == k as u32;
        let end = payload.iter().position(|b| *b == 0).ok_or(Errno::EINVAL)?;
        let path = core::str::from_utf8(&payload[..end]).map_err(|_| Errno::EINVAL)?;
        let value = &payload[end + 1..];
        let valid = |c: char| c.is_ascii_alphanumeric() || "-/_@".contains(c);
        if path.is_empty() || !path.chars().all(valid) || path.contains("//") {
            return Err(Errno::EINVAL);
        }
        let path = absolute(path);

        let transaction = match header.tx_id {
            0 => None,
            id => {
                let transaction = self.transactions.iter_mut().find(|t| t.id == id);
                Some(transaction.ok_or(Errno::ENOENT)?)
            }
        };
        let tree = match &transaction {
            Some(transaction) => &transaction.tree,
            None => &self.tree,
        };

        let change = if is(Kind::Read) || is(Kind::Directory) {
            let reply = match tree.read(&path) {
                None => Err(Errno::ENOENT),
                Some(value) if is(Kind::Read) => Ok(value.to_vec()),
                Some(_) => {
                    let names = tree.list(&path);
                    Ok(names.iter().flat_map(|n| n.bytes().chain([0])).collect())
                }
            };
            if let Some(transaction) = transaction {
                transaction.touched.insert(path);
            }
            return reply.and_then(|reply: Vec<u8>| {
                if reply.len() > MAX_PAYLOAD_BYTES {
                    Err(Errno::E2BIG)
                } else {
                    Ok(reply)
                }
            });
        } else if is(Kind::Write) {
            Change::Write(path.clone(), value.to_vec())
        } else if is(Kind::Mkdir) {
            if tree.read(&path).is_some() {
                return Ok(b"OK\0".into());
            }
            Change::Write(path.clone(), Vec::new())
        } else if is(Kind::Rm) {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            if tree.read(&path).is_none() && tree.read(parent).is_none() {
                return Err(Errno::ENOENT);
            }
            Change::Remove(path.clone())
        } else {
            return Err(Errno::ENOSYS);
        };
        match transaction {
            Some(transaction) => {
                transaction.tree.apply(&change);
                transaction.touched.insert(path);
                transaction.changes.push(change);
            }
            None => self.apply(&change),
        }
        Ok(b"OK\0".into())
    }

    /// Changes the tree and reports it to the watches it concerns.
    fn apply(&mut self, change: &Change) {
        self.tree.apply(change);
        let (changed, removed) = match change {
            Change::Write(path, _) => (path, false),
            Change::Remove(path) => (path, true),
        };
        let mut events = Vec::new();
        for watch in &self.watches {
            let watched = absolute(&watch.path);
            if covers(&watched, changed) {
                let path = if watch.path.starts_with('/') {
                    changed.clone()
                } else {
                    // As the guest would name it.
                    let home = format!("{HOME}/");
                    changed.strip_prefix(&home).unwrap_or(changed).into()
                };
                events.push((path, watch.token.clone()));
            } else if removed && covers(changed, &watched) {
                events.push((watch.path.clone(), watch.token.clone()));
            }
        }
        for (path, token) in events {
            self.event(&path, &token);
        }
    }

    fn event(&mut self, path: &str, token: &str) {
        let header = Header {
            kind: 0,
            req_id: 0,
            tx_id: 0,
            payload_bytes: 0,
        };
        let payload = format!("{path}\0{token}\0");
        self.reply(Kind::WatchEvent as u32, &header, payload.as_bytes());
    }

    fn reply(&mut self, kind: u32, to: &Header, payload: &[u8]) {
        let header = Header {
            kind,
            req_id: to.req_id,
            tx_id: to.tx_id,
            payload_bytes: payload.len() as u32,
        };
        self.output.extend(header.as_bytes());
        self.output.extend(payload);
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the offset is in the page, aligned; the page lives as long as the hypervisor.
        unsafe { AtomicU32::from_ptr(self.page.as_ptr().add(offset).cast()) }
    }

    fn byte(&self, start: usize, index: u32) -> NonNull<u8> {
        // SAFETY: both rings lie in the page.
        unsafe { self.page.add(start + (index % ring::RING_BYTES) as usize) }
    }
}

/// The two fields of a watch request.
fn fields(payload: &[u8]) -> Option<(String, String)> {
    let text = core::str::from_utf8(payload).ok()?;
    let (path, token) = text.strip_suffix('\0')?.split_once('\0')?;
    Some((path.into(), token.into()))
}

fn absolute(path: &str) -> String {
    match path {
        "/" => String::new(),
        _ if path.starts_with('/') => path.into(),
        _ => format!("{HOME}/{path}"),
    }
}
