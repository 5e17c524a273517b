//! `dump-flows` and `get-flow`.

use std::sync::Arc;

use dp_api::Datapath;
use dp_lang::Ufid;
use dp_lang::text::{PortNames, parse_ufid};

use crate::commands::{Call, Failed, NO_ENTRY, Outcome, errno};
use crate::filter::{Filter, Given};
use crate::flow_text::{DumpFormat, flow_text};
use crate::options::Caller;

/// The names of a datapath's ports.
pub(crate) fn port_names(datapath: &Arc<dyn Datapath>) -> PortNames {
    let ports = datapath.ports().into_iter();
    ports.map(|port| (port.number, port.name)).collect()
}

impl Call<'_> {
    /// The names that ports are shown by.
    fn shown_names(&self, datapath: &Arc<dyn Datapath>) -> PortNames {
        if self.options.shows_names() {
            port_names(datapath)
        } else {
            PortNames::none()
        }
    }

    fn format(&self, datapath: &Arc<dyn Datapath>) -> DumpFormat {
        DumpFormat {
            more: self.options.more,
            after_ufid: ",",
            origin: true,
            kernel: !datapath.is_userspace(),
        }
    }
}

pub(crate) fn dump_flows(call: &mut Call<'_>) -> Outcome {
    let given = Given::new(call.operands);
    if given.types.is_some() && call.caller == Caller::Tool {
        let text = "Invalid argument 'type'. Use 'ovs-appctl dpctl/dump-flows' instead.";
        return call.fail(text);
    }
    let (datapath, rest) = call.optional_datapath(&given.rest, 0)?;
    debug_assert!(rest.is_empty(), "the datapath's name is the only operand");
    let filter = match Filter::parse(&given, &port_names(&datapath)) {
        Ok(filter) => filter,
        Err((text, Some(why))) => return call.fail_with(&text, why),
        Err((text, None)) => return call.fail(text),
    };
    let (names, format, now) = (
        call.shown_names(&datapath),
        call.format(&datapath),
        call.host.now(),
    );
    let mut text = String::new();
    for flow in call.host.flows(&datapath) {
        if filter.wants(&flow.key.expand(), &flow.mask.expand_mask()) {
            text += &flow_text(&flow, &names, format, now);
            text.push('\n');
        }
    }
    if !text.is_empty() && filter.pmd.is_none() && datapath.is_userspace() {
        text.insert_str(0, "flow-dump from the main thread:\n");
    }
    call.print(text);
    Ok(())
}

pub(crate) fn get_flow(call: &mut Call<'_>) -> Outcome {
    let (datapath, rest) = call.optional_datapath(call.operands, 1)?;
    let ufid = call.ufid(rest[0])?;
    let Some(ufid) = ufid else {
        return call.fail("parsing flow ufid");
    };
    match call.host.flow(&datapath, ufid) {
        Ok(flow) => {
            let names = call.shown_names(&datapath);
            let format = call.format(&datapath);
            let text = flow_text(&flow, &names, format, call.host.now());
            call.print(text + "\n");
            Ok(())
        }
        Err(error) => call.fail_with("getting flow", &errno(&error, NO_ENTRY)),
    }
}

/// `ufid:` and the id in the usual form.
const UFID_LEN: usize = 5 + 36;

impl Call<'_> {
    /// The id that `flow` begins with, if it does.
    pub(crate) fn ufid(&mut self, flow: &str) -> Outcome<Option<Ufid>> {
        if !flow.starts_with("ufid:") {
            return Ok(None);
        }
        let ufid = flow.get(..UFID_LEN).and_then(parse_ufid);
        if ufid.is_none() {
            self.report.complain("parsing flow ufid (Invalid argument)");
            return Err(Failed);
        }
        Ok(ufid)
    }
}
