//! `add-flow`, `mod-flow`, `del-flow`, and the same for files of flows.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use dp_api::{Datapath, Error, FlowPut, FlowStats};
use dp_lang::Ufid;
use dp_lang::text::{parse_actions, parse_flow};
use net_flow::{MiniKey, slot};

use crate::commands::{Call, Failed, INVALID, NO_ENTRY, Outcome, errno};
use crate::dump::port_names;
use crate::flow_text::stats_text;
use crate::lines::{Line, parse_line, preprocess};
use crate::options::Caller;

/// What is done to a flow that is put.
#[derive(Clone, Copy, PartialEq)]
enum Put {
    Add,
    Modify,
}

/// A flow as it is given.
struct GivenFlow {
    key: MiniKey,
    mask: MiniKey,
    ufid: Ufid,
    by_ufid: bool,
}

impl Call<'_> {
    fn print_stats(&mut self, stats: &FlowStats) {
        if self.options.statistics {
            let text = stats_text(stats, self.host.now());
            self.print(text + "\n");
        }
    }

    /// Reads a flow; bits that nobody named do not matter, apart from those that always do.
    fn given_flow(
        &mut self,
        datapath: &Arc<dyn Datapath>,
        text: &str,
        problem: fn(&str) -> String,
    ) -> Outcome<GivenFlow> {
        let ufid = self.ufid(text)?;
        let flow = match parse_flow(text, &port_names(datapath)) {
            Ok(flow) => flow,
            Err(error) => return self.fail_with(&problem(&error), INVALID),
        };
        let mut mask = flow.mask;
        mask.set_exact(slot::RECIRC_ID);
        mask.set_exact(slot::ETH_TYPE);
        if flow.key.get(slot::VLAN_TCI) == 0 {
            mask.set_exact(slot::VLAN_TCI);
        }
        let key = MiniKey::under(&flow.key, &mask);
        let mask = MiniKey::new(mask.as_key());
        Ok(GivenFlow {
            ufid: ufid.unwrap_or_else(|| Ufid::of(&key, &mask)),
            by_ufid: ufid.is_some(),
            key,
            mask,
        })
    }

    fn put(
        &mut self,
        datapath: &Arc<dyn Datapath>,
        flow: &str,
        actions: &str,
        what: Put,
    ) -> Outcome {
        let flow = self.given_flow(datapath, flow, |e| format!("parsing flow key ({e})"))?;
        let Ok(actions) = parse_actions(actions, &port_names(datapath)) else {
            return self.fail_with("parsing actions", INVALID);
        };
        let before = datapath.flow_get(flow.ufid);
        let put = FlowPut {
            ufid: Some(flow.ufid),
            key: flow.key,
            mask: flow.mask,
            actions: actions.into(),
            replace: what == Put::Modify,
            zero_stats: what == Put::Modify && self.options.clear,
        };
        let may_create = what == Put::Add || self.options.may_create;
        let done = match &before {
            Err(error @ Error::NotFound(_)) if !may_create => Err(error.clone()),
            _ => self.host.flow_put(datapath, put),
        };
        if let Err(error) = done {
            return self.fail_with("updating flow table", &errno(&error, NO_ENTRY));
        }
        self.print_stats(&before.map(|flow| flow.stats).unwrap_or_default());
        Ok(())
    }

    fn delete(&mut self, datapath: &Arc<dyn Datapath>, flow: &str) -> Outcome {
        let flow = self.given_flow(datapath, flow, str::to_owned)?;
        match self.host.flow_del(datapath, flow.ufid) {
            Ok(stats) => {
                self.print_stats(&stats);
                Ok(())
            }
            Err(error) => {
                let why = errno(&error, NO_ENTRY);
                self.report.complain(format!("deleting flow ({why})"));
                if matches!(error, Error::NotFound(_)) && !flow.by_ufid {
                    self.print("Perhaps you need to specify a UFID?\n");
                }
                Err(Failed)
            }
        }
    }
}

fn put_flow(call: &mut Call<'_>, what: Put) -> Outcome {
    let (datapath, rest) = call.optional_datapath(call.operands, 2)?;
    call.put(&datapath, rest[0], rest[1], what)
}

pub(crate) fn add_flow(call: &mut Call<'_>) -> Outcome {
    put_flow(call, Put::Add)
}

pub(crate) fn mod_flow(call: &mut Call<'_>) -> Outcome {
    put_flow(call, Put::Modify)
}

pub(crate) fn del_flow(call: &mut Call<'_>) -> Outcome {
    let (datapath, rest) = call.optional_datapath(call.operands, 1)?;
    call.delete(&datapath, rest[0])
}

/// Opens a file of flows; a tool's standard input is called `-`.
fn open(name: &str, caller: Caller) -> std::io::Result<Box<dyn BufRead>> {
    if name == "-" && caller == Caller::Tool {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    Ok(Box::new(BufReader::new(File::open(name)?)))
}

/// Carries out the lines of a file, each of which may fail for itself; `command` is for
/// lines that name none.
fn process(call: &mut Call<'_>, command: &str) -> Outcome {
    let (datapath, rest) = call.optional_datapath(call.operands, 1)?;
    let name = rest[0];
    let lines = match open(name, call.caller) {
        Ok(lines) => lines,
        Err(error) => {
            let why = base::errno_text(&error);
            return call.fail_with(&format!("Opening file \"{name}\" failed"), &why);
        }
    };
    let mut failed = false;
    for (number, line) in lines.lines().enumerate() {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                let why = base::errno_text(&error);
                return call.fail_with(&format!("Reading file \"{name}\" failed"), &why);
            }
        };
        let Some(line) = preprocess(&line) else {
            continue;
        };
        let outcome = match parse_line(line, command) {
            None => {
                let number = number + 1;
                call.fail(format!("Failed parsing line number {number}, skipped!"))
            }
            Some(Line::Add(flow, actions)) => call.put(&datapath, flow, actions, Put::Add),
            Some(Line::Modify(flow, actions)) => call.put(&datapath, flow, actions, Put::Modify),
            Some(Line::Delete(flow)) => call.delete(&datapath, flow),
        };
        failed |= outcome.is_err();
    }
    if failed {
        return Err(Failed);
    }
    Ok(())
}

pub(crate) fn add_flows(call: &mut Call<'_>) -> Outcome {
    process(call, "add")
}

pub(crate) fn mod_flows(call: &mut Call<'_>) -> Outcome {
    process(call, "modify")
}

pub(crate) fn del_flows(call: &mut Call<'_>) -> Outcome {
    match call.operands {
        [name] if !call.exists(name) => process(call, "delete"),
        [_, _] => process(call, "delete"),
        operands => {
            let (datapath, _) = call.optional_datapath(operands, 0)?;
            call.host.flow_flush(&datapath);
            Ok(())
        }
    }
}
