//! Nodes that are ready, in the order in which they became so.

/// A line of nodes. What was written last is read soon, and is in the cache still.
#[derive(Default)]
pub(crate) struct Queue {
    nodes: Vec<u32>,
    /// Those before it have been taken out.
    next: usize,
}

/// When so many have been taken out, the others move up if they are fewer.
const GONE_MAX: usize = 1024;

impl Queue {
    #[inline]
    pub(crate) fn push(&mut self, node: u32) {
        self.nodes.push(node);
    }

    pub(crate) fn extend(&mut self, nodes: impl IntoIterator<Item = u32>) {
        self.nodes.extend(nodes);
    }

    /// The first, which stays.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        self.nodes.get(self.next).copied()
    }

    /// Takes the first out, if there is one.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let node = self.first()?;
        self.next += 1;
        if self.next == self.nodes.len() {
            self.clear();
        } else if self.next >= GONE_MAX {
            self.move_up();
        }
        Some(node)
    }

    #[cold]
    fn move_up(&mut self) {
        if self.next * 2 >= self.nodes.len() {
            self.nodes.drain(..self.next);
            self.next = 0;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.nodes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{GONE_MAX, Queue};

    #[test]
    fn nodes_come_out_in_the_order_in_which_they_went_in() {
        let (mut queue, mut expected) = (Queue::default(), 0);
        for node in 0..10 * GONE_MAX as u32 {
            queue.push(node);
            // Two of three are taken out at once, so that some wait, and all kinds of lengths come about.
            if node % 3 > 0 {
                assert_eq!(queue.first(), Some(expected));
                assert_eq!(queue.pop(), Some(expected));
                expected += 1;
            }
        }
        while let Some(node) = queue.pop() {
            assert_eq!(node, expected);
            expected += 1;
        }
        assert_eq!(expected, 10 * GONE_MAX as u32);
        assert!(queue.is_empty());
    }

    #[test]
    fn who_has_been_taken_out_takes_no_room() {
        let mut queue = Queue::default();
        queue.extend(0..100);
        for node in 0..100 * GONE_MAX as u32 {
            queue.push(100 + node);
            assert_eq!(queue.pop(), Some(node));
        }
        assert!(queue.nodes.capacity() < 4 * GONE_MAX, "{}", queue.nodes.capacity());
    }
}
