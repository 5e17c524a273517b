//! `learn(...)`.

use crate::message::FlowModFlags;
use net_flow::Subfield;

/// `learn(...)`: a rule made from the packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Learn {
    /// Seconds of disuse after which the rule goes, 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the rule goes, 0 for never.
    pub hard_timeout: u16,
    /// As in `fin_timeout`.
    pub fin_idle_timeout: u16,
    /// As in `fin_timeout`.
    pub fin_hard_timeout: u16,
    /// Priority of the rule.
    pub priority: u16,
    /// Table of the rule.
    pub table: u8,
    /// Cookie of the rule.
    pub cookie: u64,
    /// Flags of the rule (`send_flow_rem` only).
    pub flags: FlowModFlags,
    /// The learned rules go when this rule goes.
    pub delete_learned: bool,
    /// At most so many rules with this cookie and table, 0 for no limit.
    pub limit: u32,
    /// One bit that takes whether the limit allowed the rule.
    pub result_dst: Option<Subfield>,
    /// What the rule matches and does.
    pub specs: Box<[LearnSpec]>,
}

/// One part of a learned rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LearnSpec {
    /// How many bits.
    pub bits: u16,
    /// Where the value comes from.
    pub src: LearnSrc,
    /// What the value is for.
    pub dst: LearnDst,
}

/// Where the value of a learned part comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LearnSrc {
    /// From the packet.
    Field(Subfield),
    /// A constant, right-justified.
    Immediate(u128),
}

/// What the value of a learned part is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LearnDst {
    /// The rule matches it.
    Match(Subfield),
    /// The rule writes it.
    Load(Subfield),
    /// The rule sends to it.
    Output,
}
