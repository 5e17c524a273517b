//! Actions that write fields: `set_field`, `load`, `move`.

use net_flow::Field;

use net_flow::Subfield;

/// `set_field:VALUE[/MASK]->FIELD` and `load:VALUE->FIELD[]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SetField {
    /// What is written.
    pub field: Field,
    /// The value, right-justified; 0 where `mask` is 0.
    pub value: u128,
    /// The bits that are written.
    pub mask: u128,
    /// Whether it was said as Nicira's `load`, which matters to text only.
    pub load: bool,
    /// The rule's match guarantees a VLAN tag (matters when writing the VLAN id in
    /// OpenFlow 1.0 and 1.1, where that can add a tag).
    pub flow_has_vlan: bool,
}

/// `move:SRC->DST`; both have the same number of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// Read here.
    pub src: Subfield,
    /// Written here.
    pub dst: Subfield,
}
