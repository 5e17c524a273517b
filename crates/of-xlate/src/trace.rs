//! The sink of a trace: a tree of what happened, and its text.

use net_flow::packet::put_packet;
use net_flow::text::{subfield, value};
use net_flow::{FlowKey, Names, Subfield};
use of_wire::Action;
use of_wire::action::put_actions;

/// What a node of the tree tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A bridge is entered.
    Bridge,
    /// A table was looked up, or the action set begins.
    Table,
    /// A frozen translation goes on.
    Thaw,
    /// An action is carried out.
    Action,
    /// A group's bucket is carried out.
    Bucket,
    /// A detail of what an action did.
    Detail,
    /// Something that might surprise.
    Warning,
    /// Something wrong.
    Error,
}

impl NodeKind {
    /// Whether what follows such a node at the end of a list is not drawn to its left.
    const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Action | Self::Bucket | Self::Detail | Self::Warning | Self::Error
        )
    }
}

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(usize);

impl NodeId {
    pub(crate) const ROOT: Self = Self(usize::MAX);
}

#[derive(Debug)]
struct Node {
    kind: NodeKind,
    text: String,
    children: Vec<usize>,
}

/// What happened in a translation.
#[derive(Debug)]
pub struct Trace {
    nodes: Vec<Node>,
    roots: Vec<usize>,
    at: NodeId,
    /// Names of ports, where texts may use them.
    pub(crate) names: Names,
}

impl Default for Trace {
    fn default() -> Self {
        Self::new(Names::default())
    }
}

impl Trace {
    /// An empty tree, in whose texts ports go by `names`.
    pub const fn new(names: Names) -> Self {
        Self {
            nodes: Vec::new(),
            roots: Vec::new(),
            at: NodeId::ROOT,
            names,
        }
    }

    pub(crate) fn add(&mut self, kind: NodeKind, text: String) -> NodeId {
        let id = self.nodes.len();
        self.nodes.push(Node {
            kind,
            text,
            children: Vec::new(),
        });
        match self.nodes.get_mut(self.at.0) {
            Some(parent) => parent.children.push(id),
            None => self.roots.push(id),
        }
        NodeId(id)
    }

    /// Adds a node below which those that follow stand; returns where the tree stood.
    pub(crate) fn enter(&mut self, kind: NodeKind, text: String) -> NodeId {
        let node = self.add(kind, text);
        std::mem::replace(&mut self.at, node)
    }

    pub(crate) const fn leave(&mut self, node: NodeId) {
        self.at = node;
    }

    /// The tree as `ofproto/trace` prints it.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Lists that are being printed: their nodes, how many were, their level.
        let mut lists = vec![(&self.roots, 0, 0)];
        while let Some((list, done, level)) = lists.pop() {
            let Some(id) = list.get(done) else { continue };
            lists.push((list, done + 1, level));
            let node = &self.nodes[*id];
            let more = usize::from(done + 1 < list.len() || node.kind.is_terminal());
            put_node(&mut out, node, (level + more) * 4);
            lists.push((&node.children, 0, level + 2 * more));
        }
        out
    }
}

fn put_node(out: &mut String, node: &Node, indent: usize) {
    let pad = " ".repeat(indent);
    let text = &node.text;
    match node.kind {
        NodeKind::Detail => out.push_str(&format!("{pad} -> {text}\n")),
        NodeKind::Warning => out.push_str(&format!("{pad} >> {text}\n")),
        NodeKind::Error => out.push_str(&format!("{pad} >>>> {text} <<<<\n")),
        NodeKind::Bridge => {
            let line = "-".repeat(text.len());
            out.push_str(&format!("\n{pad}{text}\n{pad}{line}\n"));
        }
        NodeKind::Table | NodeKind::Thaw | NodeKind::Bucket | NodeKind::Action => {
            out.push_str(&format!("{pad}{text}\n"))
        }
    }
}

/// An action as `ovs-ofctl` prints it.
pub(crate) fn action_text(action: &Action) -> String {
    actions_text(std::slice::from_ref(action))
}

/// Actions as `ovs-ofctl` prints them.
pub(crate) fn actions_text(actions: &[Action]) -> String {
    let mut text = String::new();
    put_actions(&mut text, actions, &Names::default());
    text
}

/// A packet's key as `ovs-ofctl` prints it.
pub(crate) fn flow_text(key: &FlowKey, names: &Names) -> String {
    let mut text = String::new();
    put_packet(&mut text, key, names);
    text
}

/// What a part of a field is now.
pub(crate) fn subfield_text(part: Subfield, key: &FlowKey) -> String {
    let mut text = String::new();
    subfield::put(&mut text, part);
    text.push_str(" is now ");
    let now = part.read(key).unwrap_or(0);
    if part.is_whole() {
        let field = part.field;
        value::put(&mut text, field, now, field.full_mask(), &Names::default());
    } else if now == 0 {
        text.push('0');
    } else {
        text.push_str(&format!("{now:#x}"));
    }
    text
}
