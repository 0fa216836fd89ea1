//! The table of connections: slots that are used again, with a generation each.

use super::{
    connection::Connection,
    demux::{ConnectionId, Demux, Tuple},
    isn::Secrets,
};
use alloc::{boxed::Box, collections::VecDeque, vec::Vec};

#[derive(Debug)]
struct Slot<P> {
    generation: u32,
    connection: Option<Box<Connection<P>>>,
}

/// All connections, those in TIME-WAIT excepted.
#[derive(Debug)]
pub(super) struct Table<P> {
    slots: Vec<Slot<P>>,
    /// Free slots, longest free first: so that generations come round late.
    free: VecDeque<usize>,
    demux: Demux,
    count: usize,
}

impl<P> Table<P> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: VecDeque::new(),
            demux: Demux::new(),
            count: 0,
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Whether one has this name.
    pub(super) fn contains(&mut self, tuple: &Tuple, secrets: &Secrets) -> bool {
        self.find(tuple, secrets).is_some()
    }

    /// The slot of the connection of this name.
    pub(super) fn find(&mut self, tuple: &Tuple, secrets: &Secrets) -> Option<usize> {
        self.demux.find(tuple, || secrets.table_hash(tuple))
    }

    /// Adds the connection that `make` makes for the identity it is given.
    pub(super) fn insert(
        &mut self,
        secrets: &Secrets,
        make: impl FnOnce(ConnectionId) -> Connection<P>,
    ) -> ConnectionId {
        let index = self.free.pop_front().unwrap_or(self.slots.len());
        if index == self.slots.len() {
            self.slots.push(Slot {
                generation: 0,
                connection: None,
            });
        }
        let slot = &mut self.slots[index];
        slot.generation = slot.generation.wrapping_add(1);
        let id = ConnectionId::new(index, slot.generation);
        let connection = make(id);
        let tuple = connection.tuple;
        slot.connection = Some(Box::new(connection));
        self.demux.insert(tuple, secrets.table_hash(&tuple), index);
        self.count += 1;
        id
    }

    /// The connection in a slot.
    pub(super) fn at(&mut self, index: usize) -> Option<&mut Connection<P>> {
        self.slots.get_mut(index)?.connection.as_deref_mut()
    }

    /// The connection of this identity, if it is still there.
    pub(super) fn get(&mut self, id: ConnectionId) -> Option<&mut Connection<P>> {
        self.at(id.index()).filter(|connection| connection.id == id)
    }

    /// The same, to look at.
    pub(super) fn peek(&self, id: ConnectionId) -> Option<&Connection<P>> {
        let connection = self.slots.get(id.index())?.connection.as_deref()?;
        (connection.id == id).then_some(connection)
    }

    /// Segments no longer find the connection; its owner still does.
    pub(super) fn unname(&mut self, index: usize, secrets: &Secrets) {
        if let Some(tuple) = self.at(index).map(|connection| connection.tuple)
            && self.demux.find(&tuple, || secrets.table_hash(&tuple)) == Some(index)
        {
            self.demux.remove(&tuple, secrets.table_hash(&tuple));
        }
    }

    /// Frees a slot.
    pub(super) fn remove(&mut self, index: usize, secrets: &Secrets) {
        self.unname(index, secrets);
        if let Some(slot) = self.slots.get_mut(index)
            && slot.connection.take().is_some()
        {
            self.free.push_back(index);
            self.count -= 1;
        }
    }

    /// All of them, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection<P>> {
        self.slots
            .iter_mut()
            .filter_map(|slot| slot.connection.as_deref_mut())
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection<P>> {
        self.slots
            .iter()
            .filter_map(|slot| slot.connection.as_deref())
    }
}
