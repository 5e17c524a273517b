//! Which flows a dump shows.

use dp_lang::text::PortNames;
use net_flow::text::exact_flow;
use net_flow::{FlowKey, FlowMask, KEY_WORDS, Match, Names};

/// Words of `type=`, and whether our flows are of that kind: none is in hardware.
const TYPES: &[(&str, bool)] = &[
    ("ovs", true),
    ("tc", false),
    ("dpdk", false),
    ("offloaded", false),
    ("non-offloaded", true),
    ("partially-offloaded", false),
    ("all", true),
];

/// Operands of `dump-flows` apart from the datapath's name.
#[derive(Debug, Default)]
pub(crate) struct Given<'a> {
    pub(crate) fields: Option<&'a str>,
    pub(crate) types: Option<&'a str>,
    pub(crate) pmd: Option<&'a str>,
    /// What is left: the name of a datapath.
    pub(crate) rest: Vec<&'a str>,
}

impl<'a> Given<'a> {
    /// Sorts the operands out; what is given twice is left over.
    pub(crate) fn new(operands: &[&'a str]) -> Self {
        let mut given = Self::default();
        for operand in operands {
            let (name, value) = operand.split_once('=').unwrap_or((operand, ""));
            let place = match name {
                "filter" => &mut given.fields,
                "type" => &mut given.types,
                "pmd" => &mut given.pmd,
                _ => {
                    given.rest.push(operand);
                    continue;
                }
            };
            if place.is_none() && operand.contains('=') {
                *place = Some(value);
            } else {
                given.rest.push(operand);
            }
        }
        given
    }
}

/// Which flows a dump shows.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) fields: Option<Match>,
    /// Whether the types that were asked for are those of our flows.
    pub(crate) types: bool,
    /// `pmd=`: only the flows of one thread, which then goes without saying.
    pub(crate) pmd: Option<i32>,
}

/// `pmd=-1`: the threads that serve no polled port.
const MAIN_THREAD: i32 = -1;

impl Filter {
    /// Reads what was given; port names in the fields are those of the datapath.
    ///
    /// # Errors
    /// The text of the error, and the kernel's word for it.
    pub(crate) fn parse(
        given: &Given<'_>,
        names: &PortNames,
    ) -> Result<Self, (String, Option<&'static str>)> {
        let invalid = |text: String| (text, Some("Invalid argument"));
        let fields = given.fields.map(|text| {
            let fields = exact_flow(text, &openflow_names(names));
            fields.map_err(|error| (format!("Failed to parse filter ({text}: {error})"), None))
        });
        let types = given.types.map(|text| {
            let mut ours = false;
            for word in text.split(',').filter(|word| !word.is_empty()) {
                let known = TYPES.iter().find(|(name, _)| *name == word);
                let (_, is_ours) =
                    known.ok_or_else(|| invalid(format!("Failed to parse type ({word})")))?;
                ours |= is_ours;
            }
            Ok(ours)
        });
        let pmd = given.pmd.map(|text| {
            let number = text.parse::<i32>();
            number.map_err(|_| invalid(format!("pmd={text}: not the number of a core")))
        });
        Ok(Self {
            fields: fields.transpose()?,
            types: types.transpose()?.unwrap_or(true),
            pmd: pmd.transpose()?,
        })
    }

    /// Whether a flow is shown.
    pub(crate) fn wants(&self, key: &FlowKey, mask: &FlowMask) -> bool {
        let of_thread = self.pmd.is_none_or(|pmd| pmd == MAIN_THREAD);
        self.types
            && of_thread
            && self.fields.as_ref().is_none_or(|fields| {
                // A flow is wanted if some packet of it could match the filter.
                let mut common = fields.mask().clone();
                for word in 0..KEY_WORDS {
                    common.set_word(word, common.word(word) & mask.word(word));
                }
                key.equal_under(fields.key(), &common)
            })
    }
}

/// Filters are flows as OpenFlow writes them, but their ports are the datapath's.
fn openflow_names(names: &PortNames) -> Names {
    let mut all = Names::default();
    for (number, name) in names.iter() {
        all.ports.insert(number.0, name);
    }
    all
}
