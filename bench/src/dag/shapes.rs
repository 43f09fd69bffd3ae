//! The graphs: a chain, a fan, and layers.

/// Which nodes there are, and who depends on whom. Each node comes after its inputs.
pub(crate) struct Shape {
    pub(super) inputs: Rows,
    pub(super) successors: Rows,
    pub(super) roots: Vec<u32>,
    /// Those that nobody depends on.
    pub(super) outputs: Vec<u32>,
    /// What the outputs add up to.
    pub(super) total: u64,
}

/// Lists of nodes, one for each node, one after the other.
pub(crate) struct Rows {
    starts: Vec<u32>,
    nodes: Vec<u32>,
}

impl Rows {
    fn of(rows: &[Vec<u32>]) -> Self {
        let (mut starts, mut nodes) = (vec![0], Vec::new());
        for row in rows {
            nodes.extend(row);
            starts.push(nodes.len() as u32);
        }
        Self { starts, nodes }
    }

    pub(super) fn row(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.nodes[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

/// What a node gives.
pub(super) fn give(inputs: impl IntoIterator<Item = u64>) -> u64 {
    inputs.into_iter().fold(1, u64::wrapping_add)
}

/// What the outputs add up to.
pub(super) fn total(outputs: impl IntoIterator<Item = u64>) -> u64 {
    outputs.into_iter().fold(0, u64::wrapping_add)
}

impl Shape {
    /// A thousand nodes, each of which depends on the one before.
    pub(crate) fn chain() -> Self {
        Self::of((0..1_000_u32).map(|node| node.checked_sub(1).into_iter().collect()).collect())
    }

    /// One node, a thousand that depend on it, and one that depends on them all.
    pub(crate) fn fan() -> Self {
        let mut inputs = vec![vec![]];
        inputs.extend((0..1_000).map(|_| vec![0]));
        inputs.push((1..=1_000).collect());
        Self::of(inputs)
    }

    /// A hundred layers of a hundred nodes, each of which depends on three of the layer before.
    pub(crate) fn layered() -> Self {
        const WIDTH: u32 = 100;
        let inputs = |node: u32| match (node / WIDTH).checked_sub(1) {
            None => vec![],
            Some(before) => [0, 1, 7].map(|far| before * WIDTH + (node + far) % WIDTH).into(),
        };
        Self::of((0..WIDTH * WIDTH).map(inputs).collect())
    }

    fn of(inputs: Vec<Vec<u32>>) -> Self {
        let mut successors = vec![Vec::new(); inputs.len()];
        for (node, row) in inputs.iter().enumerate() {
            for input in row {
                successors[*input as usize].push(node as u32);
            }
        }
        let without = |rows: &[Vec<u32>]| {
            (0..rows.len() as u32).filter(|node| rows[*node as usize].is_empty()).collect::<Vec<_>>()
        };
        let mut shape = Self {
            roots: without(&inputs),
            outputs: without(&successors),
            inputs: Rows::of(&inputs),
            successors: Rows::of(&successors),
            total: 0,
        };
        shape.total = shape.in_order(&mut Vec::new());
        shape
    }

    pub(crate) fn len(&self) -> usize {
        self.inputs.starts.len() - 1
    }

    /// Runs all nodes in a loop, one after the other, and gives what the outputs add up to.
    pub(super) fn in_order(&self, values: &mut Vec<u64>) -> u64 {
        values.clear();
        for node in 0..self.len() as u32 {
            values.push(give(self.inputs.row(node).iter().map(|input| values[*input as usize])));
        }
        total(self.outputs.iter().map(|output| values[*output as usize]))
    }
}
