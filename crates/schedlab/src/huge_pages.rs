//! An allocator that puts large tables on huge pages.
//!
//! A million tasks use 200 MB in a few tables, and an event touches one place in each. With pages
//! of 4 KiB half of the time is spent on address translation. Linux provides pages of 2 MiB on
//! request (`madvise`), but `std` does not request them. A program with [`HugePages`] as its global
//! allocator uses them for allocations of 4 MiB or more. It returns freed memory to the system at
//! once. Without huge pages in the system, nothing changes.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator for small sizes, huge pages for large ones.
pub struct HugePages;

const PAGE: usize = 2 << 20;
const LARGE: usize = 2 * PAGE;

// SAFETY: memory comes from `mapping` or from the system's allocator, depending only on its layout,
// and is returned to the same one.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        if is_large(layout) { mapping::map(layout.size()) } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's; fresh pages are zero.
        if is_large(layout) {
            mapping::map(layout.size())
        } else {
            unsafe { System.alloc_zeroed(layout) }
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: it was mapped with this size.
            unsafe { mapping::unmap(memory, layout.size()) }
        } else {
            // SAFETY: the caller's.
            unsafe { System.dealloc(memory, layout) }
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's: `size` is valid for this alignment.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if !is_large(layout) && !is_large(new) {
            // SAFETY: the caller's.
            return unsafe { System.realloc(memory, layout, size) };
        }
        // SAFETY: two allocations that do not overlap; the copied size fits into both.
        unsafe {
            let copy = self.alloc(new);
            if !copy.is_null() {
                copy.copy_from_nonoverlapping(memory, layout.size().min(size));
                self.dealloc(memory, layout);
            }
            copy
        }
    }
}

fn is_large(layout: Layout) -> bool {
    cfg!(target_os = "linux") && layout.size() >= LARGE && layout.align() <= PAGE
}

#[cfg(target_os = "linux")]
mod mapping {
    use super::PAGE;
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
    use std::ptr::null_mut;

    /// New pages for `size` bytes, aligned to a huge page, or null.
    pub fn map(size: usize) -> *mut u8 {
        let Some(length) = size
            .checked_next_multiple_of(PAGE)
            .filter(|length| *length <= isize::MAX as usize - PAGE)
        else {
            return null_mut();
        };
        // SAFETY: new memory, one page larger than needed, so that the parts outside of huge pages
        // can be returned at both ends.
        unsafe {
            let Ok(whole) = mmap_anonymous(
                null_mut(),
                length + PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            ) else {
                return null_mut();
            };
            let before = whole.align_offset(PAGE);
            let memory = whole.byte_add(before);
            let _ = before == 0 || munmap(whole, before).is_ok();
            let _ = munmap(memory.byte_add(length), PAGE - before);
            // A kernel that ignores the advice is not an error.
            let _ = madvise(memory, length, Advice::LinuxHugepage);
            memory.cast()
        }
    }

    /// Gives pages back.
    ///
    /// # Safety
    /// They come from [`map`] with the same size, and nothing uses them.
    pub unsafe fn unmap(memory: *mut u8, size: usize) {
        // SAFETY: the caller's.
        let _ = unsafe { munmap(memory.cast(), size.next_multiple_of(PAGE)) };
    }
}

#[cfg(not(target_os = "linux"))]
mod mapping {
    pub fn map(_size: usize) -> *mut u8 {
        std::ptr::null_mut()
    }

    pub unsafe fn unmap(_memory: *mut u8, _size: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_their_content_when_they_grow_and_shrink_across_the_limit() {
        let layout = |size| Layout::from_size_align(size, 64).unwrap();
        let sizes = [64, LARGE - 1, LARGE, 3 * LARGE + 5, 2 * LARGE, LARGE / 2, 128];
        // SAFETY: each piece is used within its size, and given back with the layout that it has.
        unsafe {
            let mut memory = HugePages.alloc_zeroed(layout(sizes[0]));
            for (&size, &next) in sizes.iter().zip(&sizes[1..]) {
                assert!(memory.align_offset(if size >= LARGE { PAGE } else { 64 }) == 0, "{size}");
                memory.write(7);
                memory.add(size.min(next) - 1).write(9);
                memory = HugePages.realloc(memory, layout(size), next);
                assert_eq!(
                    (memory.read(), memory.add(size.min(next) - 1).read()),
                    (7, 9),
                    "{size} to {next}"
                );
            }
            HugePages.dealloc(memory, layout(128));
            let zero = HugePages.alloc_zeroed(layout(LARGE));
            assert!((0..LARGE).step_by(4096).all(|at| zero.add(at).read() == 0));
            HugePages.dealloc(zero, layout(LARGE));
        }
    }
}
