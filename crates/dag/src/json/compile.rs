//! From a plan that was read to one that runs.

use std::{panic::Location, sync::Arc};

use super::{
    mistakes::{Mistakes, Path},
    op::Op,
    params::Params,
    plan::{Draft, JsonPlan},
    wanted::Wanted,
};
use crate::{
    circle,
    error::{Code, PlanError, PlanErrors},
    graph::{Graph, Handle},
};

/// Tells the circles that have no node in common, each from the node that stands first in the text.
pub(super) fn circles<R, V>(draft: &Draft<'_, R, V>, mistakes: &mut Mistakes<'_>) {
    let nodes = draft.nodes.iter().enumerate();
    let edges = nodes.flat_map(|(nth, node)| node.edges().map(move |input| (input, nth as u32)));
    for circle in circle::circles(draft.nodes.len(), edges) {
        let names: Vec<&str> = circle.iter().map(|node| &*draft.nodes[*node as usize].name).collect();
        let (error, nth) = (circle::error(&names), circle[0] as usize);
        mistakes.add(error.code, draft.nodes[nth].at, Path::Plan.field("nodes").item(nth), error.message);
    }
}

/// What is not wrong, but may not be meant.
pub(super) fn warnings<R, V>(draft: &Draft<'_, R, V>, mut mistakes: Mistakes<'_>) -> Vec<PlanError> {
    let mut feeds = vec![false; draft.nodes.len()];
    let mut stack = draft.outputs.clone();
    while let Some(node) = stack.pop() {
        if !std::mem::replace(&mut feeds[node as usize], true) {
            stack.extend(draft.nodes[node as usize].edges());
        }
    }
    let nodes = Path::Plan.field("nodes");
    for (nth, (node, feeds)) in draft.nodes.iter().zip(feeds).enumerate() {
        let path = nodes.item(nth);
        if !feeds {
            let message = format!("node \"{}\" feeds no output; it is run for its effects only", node.name);
            mistakes.add(Code::W001, node.at, path, message);
        }
        if let (Some((timeout, at)), Some(deadline)) = (node.timeout, draft.deadline)
            && timeout > deadline
        {
            let message = format!("{timeout:?} are longer than the plan's deadline of {deadline:?}");
            mistakes.add(Code::W002, at, path.field("timeout_ms"), message);
        }
    }
    mistakes.told()
}

/// Makes a plan of a draft without mistakes.
pub(super) fn compile<R, V>(
    draft: Draft<'_, R, V>,
    warnings: Vec<PlanError>,
    site: &'static Location<'static>,
) -> Result<JsonPlan<R, V>, PlanErrors>
where
    R: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    const WHOLE: &str = "a draft without mistakes is whole";
    let mut graph = Graph::<R>::new(draft.name.as_str());
    let mut handles: Vec<Option<Handle<V>>> = vec![None; draft.nodes.len()];
    let (order, looked_at) = (order(&draft), looked_at(&draft));
    let mut nodes: Vec<_> = draft.nodes.into_iter().map(Some).collect();
    let mut names = vec![Arc::from(""); nodes.len()];
    for nth in order {
        let mut node = nodes[nth as usize].take().expect("each node comes once");
        let handle = |node: &u32| handles[*node as usize].expect("a node comes after its inputs");
        let inputs = node.inputs.iter().map(handle).collect();
        let optional = node.optional.iter().map(handle).map(Handle::optional).collect();
        let references = node.references.nodes.iter().map(handle).collect();
        let Op { plant, info, .. } = node.op.expect(WHOLE);
        let params = Params { looked_at: looked_at[nth as usize], ..node.params.take().expect(WHOLE) };
        let wanted = Wanted { inputs, optional, references };
        let handle = plant(&mut graph, node.name.clone(), wanted, Arc::new(params));
        let draft = graph.nodes.last_mut().expect("one was added");
        // Blame names who has made the plan, not the op's registration.
        (draft.site, draft.op) = (site, Some(info.name.clone()));
        node.set_terms(graph.node(handle));
        handles[nth as usize] = Some(handle);
        names[nth as usize] = node.name;
    }
    let outputs: Vec<Handle<V>> =
        draft.outputs.iter().map(|node| handles[*node as usize].expect("each node was added")).collect();
    Ok(JsonPlan {
        plan: graph.plan(outputs)?,
        outputs: draft.outputs.iter().map(|node| names[*node as usize].clone()).collect(),
        warnings,
        deadline: draft.deadline,
        sample_request: draft.sample_request,
    })
}

/// How much of each node's output is looked at, where all who get it look at its beginning only.
fn looked_at<R, V>(draft: &Draft<'_, R, V>) -> Vec<Option<usize>> {
    let mut most = vec![0; draft.nodes.len()];
    let mut look = |node: &u32, count: usize| {
        let most = &mut most[*node as usize];
        *most = count.max(*most);
    };
    draft.outputs.iter().for_each(|node| look(node, usize::MAX));
    for node in &draft.nodes {
        let count = node.op.and_then(|op| op.look.as_ref()).zip(node.params.as_ref());
        let count = count.map_or(usize::MAX, |(look, params)| look(params));
        node.inputs.iter().for_each(|input| look(input, count));
        node.optional.iter().for_each(|input| look(input, count));
        node.references.nodes.iter().for_each(|input| look(input, usize::MAX));
    }
    // Nobody looks at what is run for its effects: that is not less to do.
    most.into_iter().map(|most| (1..usize::MAX).contains(&most).then_some(most)).collect()
}

/// Each node after all that it depends on, and otherwise as in the text.
fn order<R, V>(draft: &Draft<'_, R, V>) -> Vec<u32> {
    enum Step {
        Visit(u32),
        Add(u32),
    }
    let mut order = Vec::with_capacity(draft.nodes.len());
    let mut is_visited = vec![false; draft.nodes.len()];
    // Not by recursion: a chain can be as long as the plan.
    let mut stack = Vec::new();
    for node in 0..draft.nodes.len() as u32 {
        stack.push(Step::Visit(node));
        while let Some(step) = stack.pop() {
            match step {
                Step::Add(node) => order.push(node),
                Step::Visit(node) if std::mem::replace(&mut is_visited[node as usize], true) => {}
                Step::Visit(node) => {
                    stack.push(Step::Add(node));
                    stack.extend(draft.nodes[node as usize].edges().rev().map(Step::Visit));
                }
            }
        }
    }
    order
}
