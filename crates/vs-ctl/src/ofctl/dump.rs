//! Showing what a switch has.

use std::cmp::Ordering;

use net_flow::{Field, Formats, Match};
use of_wire::format_names::formats_names;
use of_wire::message::{Body, FlowStats, FlowStatsRequest, Part};
use of_wire::print::put_flow_stats;
use of_wire::text::parse_stats_request;

use super::conn::Conn;
use super::options::Criterion;
use super::{Ctl, Outcome, fatal};

pub(super) fn show(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let name = &args[0];
    let mut conn = ctl.open(name)?;
    let reply = ctl.transact(&mut conn, Body::FeaturesRequest)?;
    let style = of_wire::print::Style {
        names: &ctl.no_names,
        verbosity: ctl.settings.verbosity + 1,
    };
    let text = of_wire::print::message_text(&reply, style);
    ctl.env.print(text);
    // From OpenFlow 1.3 on, and if there are too many, ports are told elsewhere.
    let has_ports = conn.version < of_wire::Version::V13 && reply.len() + 64 <= 0xffff;
    if !has_ports {
        ctl.dump(&mut conn, Body::PortDescRequest(net_flow::PortNo::NONE))?;
    }
    ctl.dump_once(name, Body::GetConfigRequest)
}

pub(super) fn desc(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    ctl.dump_once(&args[0], Body::DescRequest)
}

pub(super) fn tables(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    ctl.dump_once(&args[0], Body::TableStatsRequest)
}

pub(super) fn table_features(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let mut conn = ctl.open(&args[0])?;
    if conn.version < of_wire::Version::V13 {
        return fatal("table features are only supported in OpenFlow 1.3 and later (use -O)");
    }
    let body = Body::TableFeaturesRequest(Part::last(Vec::new()));
    let replies = ctl.collect(&mut conn, body)?;
    let mut all = Vec::new();
    for reply in replies {
        if let Body::TableFeaturesReply(part) = reply.body {
            all.extend(part.entries);
        }
    }
    let mut text = of_wire::print::table_features_text(&all, conn.version);
    if text.starts_with('\n') {
        text.remove(0);
    }
    ctl.env.print(text + "\n");
    Ok(())
}

pub(super) fn aggregate(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let (mut conn, request) = prepare(ctl, args)?;
    ctl.dump(&mut conn, Body::AggregateStatsRequest(Box::new(request)))
}

pub(super) fn flows(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let (mut conn, request) = prepare(ctl, args)?;
    let body = Body::FlowStatsRequest(Box::new(request));
    if ctl.settings.criteria.is_empty() && !ctl.shows_names() && ctl.settings.stats {
        return ctl.dump(&mut conn, body);
    }
    let mut stats = ctl.flow_stats(&mut conn, body)?;
    let criteria = ctl.settings.criteria.clone();
    if !criteria.is_empty() {
        stats.sort_by(|a, b| compare(&criteria, a, b));
    }
    let names = ctl.names_to_show(&args[0])?;
    let show_stats = ctl.settings.stats;
    let mut line = String::new();
    for entry in &stats {
        line.clear();
        put_flow_stats(&mut line, entry, &names, show_stats);
        ctl.env.print(format_args!(" {line}\n"));
    }
    Ok(())
}

fn prepare(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome<(Conn, FlowStatsRequest)> {
    let text = args.get(1).map_or("", String::as_str);
    let names = if text.is_empty() {
        ctl.no_names.clone()
    } else {
        ctl.names_to_accept(&args[0])?
    };
    let parsed = parse_stats_request(text, &names);
    let (request, usable) = parsed.map_err(|error| ctl.explain("", &error, text))?;
    let mut conn = ctl.open(&args[0])?;
    ctl.set_dump_format(&mut conn, usable)?;
    Ok((conn, request))
}

impl Ctl<'_, '_> {
    /// Chooses a flow format for dumps.
    pub(super) fn set_dump_format(&mut self, conn: &mut Conn, usable: Formats) -> Outcome {
        let allowed = self.settings.formats;
        let order = [
            Formats::OF15_OXM,
            Formats::OF14_OXM,
            Formats::OF13_OXM,
            Formats::OF12_OXM,
            Formats::OF11_STD,
            Formats::OF10_NXM,
            Formats::OF10_STD,
        ];
        for format in order {
            if (usable & allowed).contains(format) && self.try_format(conn, format)? {
                return Ok(());
            }
        }
        let names = formats_names(usable);
        if usable.intersects(allowed) {
            fatal(format!(
                "switch does not support any of the usable flow formats ({names})"
            ))
        } else {
            fatal(format!(
                "none of the usable flow formats ({names}) is among the allowed flow formats ({})",
                formats_names(allowed)
            ))
        }
    }

    /// All flows that a request for flow statistics is answered with.
    pub(super) fn flow_stats(&mut self, conn: &mut Conn, body: Body) -> Outcome<Vec<FlowStats>> {
        let mut stats = Vec::new();
        for reply in self.collect(conn, body)? {
            if let Body::FlowStatsReply(part) = reply.body {
                stats.extend(part.entries);
            }
        }
        Ok(stats)
    }
}

fn value_of(field: Field, m: &Match) -> Option<u128> {
    let matched = !field.is_wild_in(m.mask()) && m.meets_prerequisites(field);
    matched.then(|| field.value_in(m.key())).flatten()
}

fn compare(criteria: &[Criterion], a: &FlowStats, b: &FlowStats) -> Ordering {
    for criterion in criteria {
        let order = match criterion.field {
            None => a.priority.cmp(&b.priority),
            Some(field) => {
                let values = (value_of(field, &a.matching), value_of(field, &b.matching));
                match values {
                    (Some(x), Some(y)) => x.cmp(&y),
                    // Flows without the field come last, whichever way is sorted.
                    (Some(_), None) => return Ordering::Less,
                    (None, Some(_)) => return Ordering::Greater,
                    (None, None) => Ordering::Equal,
                }
            }
        };
        let order = if criterion.falling {
            order.reverse()
        } else {
            order
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}
