//! SipHash-2-4: a keyed hash whose outputs an attacker without the key cannot predict.

/// SipHash-2-4 of `data` under `key`.
pub(crate) fn siphash24(key: &[u8; 16], data: &[u8]) -> u64 {
    let key = u128::from_le_bytes(*key);
    let (k0, k1) = (key as u64, (key >> 64) as u64);
    let mut state = State {
        v0: k0 ^ 0x736f_6d65_7073_6575,
        v1: k1 ^ 0x646f_7261_6e64_6f6d,
        v2: k0 ^ 0x6c79_6765_6e65_7261,
        v3: k1 ^ 0x7465_6462_7974_6573,
    };
    let (words, tail) = data.as_chunks::<8>();
    for word in words {
        state.word(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    last[7] = data.len() as u8;
    state.word(u64::from_le_bytes(last));
    state.v2 ^= 0xff;
    for _ in 0..4 {
        state.round();
    }
    state.v0 ^ state.v1 ^ state.v2 ^ state.v3
}

struct State {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl State {
    fn word(&mut self, word: u64) {
        self.v3 ^= word;
        self.round();
        self.round();
        self.v0 ^= word;
    }

    fn round(&mut self) {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.rotate_left(32);
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v0 = self.v0.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v2 = self.v2.rotate_left(32);
    }
}

#[cfg(test)]
mod tests;
