//! Datapaths and ports that come and go.

use std::sync::Arc;

use dp_api::{Datapath, PortInfo, PortSpec};
use dp_lang::PortNo;

use crate::commands::{Call, Failed, INVALID, NO_DEVICE, Outcome, errno};

/// An interface as it is given: `NAME[,type=TYPE][,port_no=NUMBER][,KEY=VALUE]...`.
struct Interface<'a> {
    name: &'a str,
    kind: Option<&'a str>,
    number: Option<&'a str>,
    options: Vec<(String, String)>,
}

impl Call<'_> {
    fn interface<'t>(&mut self, text: &'t str) -> Outcome<Interface<'t>> {
        let mut parts = text.split(',').filter(|part| !part.is_empty());
        let Some(name) = parts.next() else {
            return self.fail(format!("{text} is not a valid network device name"));
        };
        let mut interface = Interface {
            name,
            kind: None,
            number: None,
            options: Vec::new(),
        };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "" => return self.fail("Invalid option format"),
                "type" => interface.kind = Some(value),
                "port_no" => interface.number = Some(value),
                _ if interface.options.iter().any(|(k, _)| k == key) => {
                    return self.fail(format!("duplicate \"{key}\" option"));
                }
                _ => interface.options.push((key.to_owned(), value.to_owned())),
            }
        }
        Ok(interface)
    }

    fn number(&mut self, text: &str) -> Outcome<PortNo> {
        match text.parse() {
            Ok(number) => Ok(PortNo(number)),
            Err(_) => self.fail_with(&format!("port_no={text}: not a number"), INVALID),
        }
    }

    fn add_one(&mut self, datapath: &Arc<dyn Datapath>, text: &str) -> Outcome {
        let interface = self.interface(text)?;
        let number = interface.number.map(|text| self.number(text)).transpose()?;
        let spec = PortSpec {
            name: interface.name.to_owned(),
            kind: interface.kind.unwrap_or("system").to_owned(),
            number,
            options: interface.options,
        };
        let name = interface.name;
        let port = match self.host.port_add(datapath, &spec) {
            Ok(port) => port,
            Err(error) => {
                let what = format!("adding {name} to {} failed", self.operands[0]);
                return self.fail_with(&what, &errno(&error, NO_DEVICE));
            }
        };
        let device = datapath.port_device(port);
        let up = device.map_err(|error| errno(&error, NO_DEVICE));
        let up = up.and_then(|device| device.set_up(true).map_err(|e| base::errno_text(&e)));
        match up {
            Ok(()) => Ok(()),
            Err(why) => self.fail_with(&format!("{name}: failed bringing interface up"), &why),
        }
    }

    fn set_one(&mut self, datapath: &Arc<dyn Datapath>, text: &str) -> Outcome {
        let interface = self.interface(text)?;
        let name = interface.name;
        let Some(port) = by_name(datapath, name) else {
            let what = format!("{name}: failed to query port in {}", self.operands[0]);
            return self.fail_with(&what, NO_DEVICE);
        };
        if let Some(kind) = interface.kind.filter(|kind| *kind != port.kind) {
            let old = &port.kind;
            return self.fail(format!("{name}: can't change type from {old} to {kind}"));
        }
        if let Some(text) = interface.number {
            let number = self.number(text)?;
            if number != port.number {
                let old = port.number;
                let text = format!("{name}: can't change port number from {old} to {number}");
                return self.fail(text);
            }
        }
        let device = datapath.port_device(port.number);
        let mut options = device.map(|device| device.options()).unwrap_or_default();
        for (key, value) in interface.options {
            // An option without a value is taken back.
            options.retain(|(k, _)| *k != key);
            if !value.is_empty() {
                options.push((key, value));
            }
        }
        match datapath.port_set(port.number, &options) {
            Ok(()) => Ok(()),
            Err(dp_api::Error::Invalid(text)) => self.fail_with(&text, INVALID),
            Err(error) => {
                let why = errno(&error, NO_DEVICE);
                self.fail_with("Error updating configuration", &why)
            }
        }
    }

    fn delete_one(&mut self, datapath: &Arc<dyn Datapath>, name: &str) -> Outcome {
        let number = match name.parse() {
            Ok(number) => PortNo(number),
            Err(_) => match by_name(datapath, name) {
                Some(port) => port.number,
                None => return self.fail(format!("no port named {name}")),
            },
        };
        match self.host.port_del(datapath, number) {
            Ok(()) => Ok(()),
            Err(error) => {
                let what = format!("deleting port {name} from {} failed", self.operands[0]);
                self.fail_with(&what, &errno(&error, NO_DEVICE))
            }
        }
    }

    /// Does `f` for each operand after the datapath's name, whatever becomes of the others.
    fn each_port(&mut self, f: impl Fn(&mut Self, &Arc<dyn Datapath>, &str) -> Outcome) -> Outcome {
        let datapath = self.open(self.operands[0])?;
        let mut outcome = Ok(());
        for operand in &self.operands[1..] {
            if f(self, &datapath, operand).is_err() {
                outcome = Err(Failed);
            }
        }
        outcome
    }
}

fn by_name(datapath: &Arc<dyn Datapath>, name: &str) -> Option<PortInfo> {
    datapath.ports().into_iter().find(|port| port.name == name)
}

pub(crate) fn add_dp(call: &mut Call<'_>) -> Outcome {
    let (kind, name) = crate::commands::split_name(call.operands[0]);
    let created = if call.host.kinds().iter().any(|k| k == kind) {
        let created = call.host.create(kind, name);
        created.map_err(|error| errno(&error, NO_DEVICE))
    } else {
        Err(crate::commands::NO_FAMILY.to_owned())
    };
    if let Err(why) = created {
        return call.fail_with("add_dp", &why);
    }
    add_if(call)
}

pub(crate) fn del_dp(call: &mut Call<'_>) -> Outcome {
    let name = call.operands[0];
    call.open(name)?;
    let (kind, name) = crate::commands::split_name(name);
    match call.host.delete(kind, name) {
        Ok(()) => Ok(()),
        Err(error) => call.fail_with("del_dp", &errno(&error, NO_DEVICE)),
    }
}

pub(crate) fn add_if(call: &mut Call<'_>) -> Outcome {
    call.each_port(Call::add_one)
}

pub(crate) fn set_if(call: &mut Call<'_>) -> Outcome {
    call.each_port(Call::set_one)
}

pub(crate) fn del_if(call: &mut Call<'_>) -> Outcome {
    call.each_port(Call::delete_one)
}
