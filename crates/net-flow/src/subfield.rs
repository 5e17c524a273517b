//! Parts of fields: `NXM_NX_REG0[0..15]`.

use crate::field::Field;
use crate::key::FlowKey;
use crate::slot::Slot;

/// Some of the bits of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subfield {
    /// The field.
    pub field: Field,
    /// The lowest bit of the part, 0 for the field's least significant.
    pub offset: u16,
    /// How many bits.
    pub bits: u16,
}

impl Subfield {
    /// The whole of `field`.
    pub fn whole(field: Field) -> Self {
        let bits = field.info().bits;
        Self {
            field,
            offset: 0,
            bits,
        }
    }

    /// Whether it is the whole of its field.
    pub fn is_whole(self) -> bool {
        self == Self::whole(self.field)
    }

    /// Where it lies in a key; `None` for tunnel metadata, and if it crosses words.
    pub fn slot(self) -> Option<Slot> {
        let slot = self.field.info().slot?;
        if self.offset == 0 && self.bits >= u16::from(slot.bits) {
            return Some(slot);
        }
        let crosses = self.offset < 64 && self.offset + self.bits > 64;
        (!crosses).then(|| slot.part(self.offset as u8, self.bits as u8))
    }

    /// Its value in `key`; `None` for tunnel metadata.
    pub fn read(self, key: &FlowKey) -> Option<u128> {
        Some((self.field.value_in(key)? >> self.offset) & self.mask())
    }

    /// Writes it in a packet's key, as actions do; `None` for tunnel metadata.
    pub fn write(self, key: &mut FlowKey, value: u128) -> Option<()> {
        let bits = self.mask() << self.offset;
        let old = self.field.value_in(key)?;
        let new = (old & !bits) | ((value << self.offset) & bits);
        self.field.write(key, new)
    }

    /// Ones in as many low bits as it has.
    pub const fn mask(self) -> u128 {
        if self.bits >= 128 {
            u128::MAX
        } else {
            (1 << self.bits) - 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_crosses_words_is_still_read() {
        let mut key = FlowKey::new();
        let part = Subfield {
            field: Field::Xxreg0,
            offset: 56,
            bits: 16,
        };
        part.write(&mut key, 0xabcd).unwrap();
        assert_eq!(key.get(Field::Xxreg0.info().slot.unwrap()), 0xabcd << 56);
        assert_eq!((part.slot(), part.read(&key)), (None, Some(0xabcd)));
    }
}
