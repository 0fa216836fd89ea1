//! What belongs to the one processor that this image runs on.

/// A value that only this processor uses, outside of interrupt handlers.
#[derive(Debug)]
pub(crate) struct Local<T>(T);

// SAFETY: the image starts no other processor, and its interrupt handlers touch none of these: an
// exception's, which may, never returns to what it interrupted.
unsafe impl<T> Sync for Local<T> {}

// SAFETY: as above: there is no other thread to send it to.
unsafe impl<T> Send for Local<T> {}

impl<T> Local<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> core::ops::Deref for Local<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> core::ops::DerefMut for Local<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
