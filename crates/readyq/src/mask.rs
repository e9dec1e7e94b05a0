//! A set of levels, a bit for each: which lists have a task.
//!
//! Up to 64 levels are one word. More are several, and a further word says which of those are not
//! 0. So the first level is found, and one is taken out, without a search. A [`Probe`] counts the
//! accesses to words: to read one, or to read it and write it again.

use core::fmt::Debug;
use core::ops::{BitAnd, BitOr, BitXor, Shr};

use crate::Probe;

/// A number of levels, as a type.
#[derive(Debug)]
pub struct Levels<const COUNT: usize>;

/// The numbers of levels that a structure can have, each with its mask.
#[diagnostic::on_unimplemented(
    message = "a structure has 8, 16, 32, 64, 128 or 256 levels, a wheel 32 to 4096 buckets"
)]
pub trait Masked {
    /// The mask.
    type Mask: Mask;
}

/// The numbers of levels whose mask is one word.
#[diagnostic::on_unimplemented(message = "this structure has 8, 16, 32 or 64 levels")]
pub trait OneWord {
    /// The word.
    type Word: Word;
}

/// A set of numbers.
pub trait Mask: Clone + Debug {
    /// No number.
    const EMPTY: Self;

    /// Whether no number is in.
    fn is_empty(&self) -> bool;

    /// Puts `bit` in.
    fn insert(&mut self, bit: usize, probe: &mut impl Probe);

    /// Takes `bit` out.
    fn remove(&mut self, bit: usize, probe: &mut impl Probe);

    /// The first number that is in.
    fn first(&self, probe: &mut impl Probe) -> Option<usize>;

    /// The first number from `bit` on that is in, or of all if there is none.
    fn first_from(&self, bit: usize, probe: &mut impl Probe) -> Option<usize>;

    /// What `each` answers for the first number that it has an answer for, in the order of
    /// [`first_from`](Self::first_from) `bit`.
    fn find<T>(&self, bit: usize, mut each: impl FnMut(usize) -> Option<T>) -> Option<T> {
        let mut rest = self.clone();
        while let Some(next) = rest.first_from(bit, &mut ()) {
            if let Some(found) = each(next) {
                return Some(found);
            }
            rest.remove(next, &mut ());
        }
        None
    }
}

/// A word of a mask.
pub trait Word:
    Copy
    + Eq
    + Debug
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shr<usize, Output = Self>
{
    /// How many bits it has.
    const BITS: usize;
    /// No bit.
    const ZERO: Self;

    /// This one and `bit`, modulo the number of bits.
    fn with(self, bit: u32) -> Self;

    /// This one without `bit`, modulo the number of bits.
    fn without(self, bit: u32) -> Self;

    /// The lowest bit; the number of bits for 0.
    fn lowest(self) -> usize;

    /// This one and 1 more; wraps.
    fn add_one(self) -> Self;

    /// The bits above the lowest one, of a word that is not 0.
    fn above_lowest(self) -> Self;

    /// The lowest bit and those below, of a word that is not 0.
    fn up_to_lowest(self) -> Self;

    /// Bit `bit` becomes bit 0, those below it become the highest.
    fn rotated(self, bit: usize) -> Self;
}

macro_rules! word {
    ($($word:ty)*) => { $(
        impl Word for $word {
            const BITS: usize = <$word>::BITS as usize;
            const ZERO: Self = 0;

            #[inline(always)]
            fn with(self, bit: u32) -> Self {
                self | <$word>::wrapping_shl(1, bit)
            }

            #[inline(always)]
            fn without(self, bit: u32) -> Self {
                self & !<$word>::wrapping_shl(1, bit)
            }

            #[inline(always)]
            fn lowest(self) -> usize {
                self.trailing_zeros() as usize
            }

            #[inline(always)]
            fn add_one(self) -> Self {
                self.wrapping_add(1)
            }

            #[inline(always)]
            fn above_lowest(self) -> Self {
                // Without a shift: x86 shifts need a fixed register.
                self ^ self.wrapping_neg()
            }

            #[inline(always)]
            fn up_to_lowest(self) -> Self {
                self ^ self.wrapping_sub(1)
            }

            #[inline(always)]
            fn rotated(self, bit: usize) -> Self {
                self.rotate_right(bit as u32)
            }
        }
    )* };
}

word!(u32 u64);

/// A mask of `COUNT` words.
#[derive(Clone, Copy, Debug)]
pub struct Words<W, const COUNT: usize> {
    /// Bit w: `waiting[w]` is not 0. Unused when there is one word.
    words: W,
    waiting: [W; COUNT],
}

impl<W: Word, const COUNT: usize> Mask for Words<W, COUNT> {
    const EMPTY: Self = Words { words: W::ZERO, waiting: [W::ZERO; COUNT] };

    #[inline(always)]
    fn is_empty(&self) -> bool {
        if COUNT == 1 { self.waiting[0] == W::ZERO } else { self.words == W::ZERO }
    }

    #[inline(always)]
    fn insert(&mut self, bit: usize, probe: &mut impl Probe) {
        let word = bit / W::BITS % COUNT;
        probe.step();
        self.waiting[word] = self.waiting[word].with(bit as u32);
        if COUNT > 1 {
            probe.step();
            self.words = self.words.with(word as u32);
        }
    }

    #[inline(always)]
    fn remove(&mut self, bit: usize, probe: &mut impl Probe) {
        let word = bit / W::BITS % COUNT;
        probe.step();
        self.waiting[word] = self.waiting[word].without(bit as u32);
        if COUNT > 1 && self.waiting[word] == W::ZERO {
            probe.step();
            self.words = self.words.without(word as u32);
        }
    }

    #[inline(always)]
    fn first(&self, probe: &mut impl Probe) -> Option<usize> {
        probe.step();
        if self.is_empty() {
            return None;
        }
        if COUNT == 1 {
            return Some(self.waiting[0].lowest());
        }
        probe.step();
        let word = self.words.lowest() % COUNT;
        Some(word * W::BITS + self.waiting[word].lowest())
    }

    #[inline(always)]
    fn first_from(&self, bit: usize, probe: &mut impl Probe) -> Option<usize> {
        let (word, bit) = (bit / W::BITS % COUNT, bit % W::BITS);
        probe.step();
        if COUNT == 1 {
            if self.waiting[0] == W::ZERO {
                return None;
            }
            return Some((bit + self.waiting[0].rotated(bit).lowest()) % W::BITS);
        }
        let rest = self.waiting[word] >> bit;
        if rest != W::ZERO {
            return Some(word * W::BITS + bit + rest.lowest());
        }
        probe.step();
        if self.words == W::ZERO {
            return None;
        }
        // This word comes last: its remaining bits have wrapped around.
        let next = word + 1 + self.words.rotated(word + 1).lowest();
        let word = next % W::BITS % COUNT;
        probe.step();
        Some(word * W::BITS + self.waiting[word].lowest() % W::BITS)
    }
}

macro_rules! levels {
    ($($count:literal: $words:literal of $word:ty,)*) => { $(
        impl Masked for Levels<$count> {
            type Mask = Words<$word, $words>;
        }
    )* };
}

levels! { 8: 1 of u32, 16: 1 of u32, 32: 1 of u32, 64: 1 of u64, 4096: 64 of u64, }
#[cfg(target_pointer_width = "64")]
levels! { 128: 2 of u64, 256: 4 of u64, }
#[cfg(not(target_pointer_width = "64"))]
levels! { 128: 4 of u32, 256: 8 of u32, }

macro_rules! one_word {
    ($($count:literal of $word:ty,)*) => { $(
        impl OneWord for Levels<$count> {
            type Word = $word;
        }
    )* };
}

one_word! { 8 of u32, 16 of u32, 32 of u32, 64 of u64, }
