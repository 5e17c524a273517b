//! The configuration's run: changes of the database go to the switch as steps, and what
//! the switch reports goes back.

use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use db_client::{Client, Layout, Outcome, TableId, Ticket, Transaction};
use db_model::{Atom, DatabaseSchema, Datum, OPEN_VSWITCH_SCHEMA, Uuid};
use vs_switch::status::Changes;

use crate::desired::Desired;
use crate::plan::{Dirty, carry_out, plan};
use crate::statistics::Rounds;
use crate::status::StatusWriter;
use crate::tables::Tables;
use crate::target::Target;
use crate::watch::Watcher;

/// The lock that a switch holds on its database.
const LOCK: &str = "ovs_vswitchd";
/// How often statistics are written if `stats-update-interval` does not say otherwise.
const STATISTICS_INTERVAL: Duration = Duration::from_secs(5);
/// How soon other status is written after it changed.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);

/// The bridges' configuration: a client of the database on one side, a switch on the other.
#[derive(Debug)]
pub struct Bridges {
    client: Client,
    tables: Tables,
    watcher: Watcher,
    /// What the switch was made to be.
    current: Desired,
    dirty: Dirty,
    /// The configuration that `cur_cfg` must show when it is in force.
    applied: Option<i64>,
    pending: Changes,
    status_ticket: Option<Ticket>,
    next_status: Instant,
    statistics: Rounds,
    wrote_types: bool,
    ready: bool,
}

impl Bridges {
    /// Nothing is configured before the database was read and its lock is held.
    ///
    /// # Panics
    /// Never: the schema that is built in is valid, as its test shows.
    pub fn new() -> Self {
        let schema = DatabaseSchema::from_text(OPEN_VSWITCH_SCHEMA);
        let schema = schema.unwrap_or_else(|e| panic!("built-in schema: {e:?}"));
        let layout = Arc::new(Layout::new(&schema));
        let (tables, interest) = Tables::new(&layout);
        let mut client = Client::new(Arc::clone(&layout), interest);
        client.set_leader_only(true);
        client.set_lock(Some(LOCK));
        Self {
            client,
            tables,
            watcher: Watcher::new(layout, tables),
            current: Desired::default(),
            dirty: Dirty::default(),
            applied: None,
            pending: Changes::default(),
            status_ticket: None,
            next_status: Instant::ZERO,
            statistics: Rounds::default(),
            wrote_types: false,
            ready: false,
        }
    }

    /// The client, to be told of the connection and its messages.
    pub const fn client_mut(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Whether the database's configuration was carried out once.
    pub const fn is_ready(&self) -> bool {
        self.ready
    }

    /// Takes in what changed on either side.
    pub fn run(&mut self, target: &mut dyn Target, now: Instant) {
        while let Some((ticket, outcome)) = self.client.poll_outcome() {
            self.finish(ticket, &outcome);
        }
        if !self.is_in_charge() {
            return;
        }
        self.reconfigure(target, now);
        self.report(target, now);
    }

    /// Whether the database is there and this switch is the one that may write to it.
    fn is_in_charge(&self) -> bool {
        !self.client.is_lock_contended() && self.client.is_filled() && self.client.has_lock()
    }

    /// When [`Bridges::run`] is to be called again at the latest, unless the database says something before.
    pub fn next_deadline(&self) -> Instant {
        let can_report = self.ready && self.is_in_charge() && self.root().is_some();
        if !can_report || self.status_ticket.is_some() {
            return Instant::MAX;
        }
        let waits = !self.pending.is_empty() || self.applied.is_some();
        let status = if waits {
            self.next_status
        } else {
            Instant::MAX
        };
        self.statistics.next_deadline().min(status)
    }

    fn reconfigure(&mut self, target: &mut dyn Target, now: Instant) {
        let changes = self.client.replica_mut().take_changes();
        // A database without a row is a configuration, too.
        if changes.is_empty() && self.ready {
            return;
        }
        let dirty = self.watcher.update(self.client.replica(), &changes);
        self.dirty.join(dirty);
        let dirty = std::mem::take(&mut self.dirty);
        for step in plan(&self.current, self.watcher.desired(), &dirty) {
            match target.apply(&step, now) {
                Ok(()) => carry_out(&mut self.current, &step),
                Err(error) => {
                    log::error!(target: "bridge", "{error}");
                    carry_out(&mut self.current, &step);
                }
            }
        }
        for (bridge, ports) in &dirty.bridges {
            self.pending.bridges.push(bridge.clone());
            self.note_interfaces(bridge, ports.iter());
        }
        self.applied = self.root().map(|row| self.integer(row, "next_cfg"));
        target.configured();
        self.ready = true;
        self.next_status = now;
    }

    fn note_interfaces<'a>(&mut self, bridge: &str, ports: impl Iterator<Item = &'a String>) {
        let Some(desired) = self.watcher.desired().bridges.get(bridge) else {
            return;
        };
        for port in ports.filter_map(|p| desired.ports.get(p)) {
            for interface in port.interfaces.keys() {
                self.pending
                    .interfaces
                    .push((bridge.to_string(), interface.clone()));
            }
        }
    }

    /// The one row of `Open_vSwitch`.
    fn root(&self) -> Option<Uuid> {
        let table = self.client.replica().table(self.tables.root.id);
        table.rows().next().map(|row| row.uuid())
    }

    fn integer(&self, row: Uuid, column: &str) -> i64 {
        let replica = self.client.replica();
        let table = self.tables.root.id;
        let column = replica.layout()[table].column(column);
        let datum = column.and_then(|c| Some(replica.row(table, row)?.get(c)));
        datum.and_then(Datum::as_integer).unwrap_or(0)
    }

    fn statistics_interval(&self) -> Duration {
        let replica = self.client.replica();
        let table = self.tables.root.id;
        let column = replica.layout()[table].column("other_config");
        let row = self.root().and_then(|row| replica.row(table, row));
        let text = row
            .zip(column)
            .and_then(|(r, c)| r.get(c).get_str("stats-update-interval"));
        let millis = text.and_then(|t| t.parse().ok()).map(Duration::from_millis);
        millis.map_or(STATISTICS_INTERVAL, |t| t.max(STATISTICS_INTERVAL))
    }

    /// Writes status back: at once after a reconfiguration, at intervals otherwise.
    fn report(&mut self, target: &mut dyn Target, now: Instant) {
        let changes = target.take_changes();
        self.pending.interfaces.extend(changes.interfaces);
        self.pending.bridges.extend(changes.bridges);
        let owes_cfg = self.applied.is_some() && target.is_settled();
        let due = now >= self.next_status || owes_cfg || now >= self.statistics.next_deadline();
        if self.status_ticket.is_some() || !due || !self.ready {
            return;
        }
        let Some(root) = self.root() else { return };
        let mut transaction = Transaction::new();
        let mut pending = std::mem::take(&mut self.pending);
        pending.interfaces.sort();
        pending.interfaces.dedup();
        pending.bridges.sort();
        pending.bridges.dedup();
        self.write_status(target, root, &pending, &mut transaction);
        self.write_statistics(target, now, &mut transaction);
        match self.client.commit(&transaction) {
            Ok(ticket) => self.status_ticket = Some(ticket),
            Err(outcome) => self.after_status(&outcome, pending),
        }
        self.next_status = now + STATUS_INTERVAL;
    }

    fn write_status(
        &mut self,
        target: &dyn Target,
        root: Uuid,
        pending: &Changes,
        transaction: &mut Transaction,
    ) {
        let replica = self.client.replica();
        let mut writer = StatusWriter {
            replica,
            tables: self.tables,
            transaction,
        };
        for (bridge, interface) in &pending.interfaces {
            let row = self.watcher.interface(interface);
            let status = target.interface_status(bridge, interface);
            if let Some((row, status)) = row.zip(status) {
                writer.interface(row, &status);
            }
        }
        for bridge in &pending.bridges {
            if let Some((row, status)) = self
                .watcher
                .bridge(bridge)
                .zip(target.bridge_status(bridge))
            {
                writer.bridge(row, &status);
                for controller in &status.controllers {
                    if let Some(row) = self.controller_row(row, &controller.target) {
                        writer.controller(row, controller);
                    }
                }
            }
        }
        if !self.wrote_types {
            let (datapaths, interfaces) = target.types();
            writer.root_set(root, "datapath_types", &datapaths);
            writer.root_set(root, "iface_types", &interfaces);
            self.wrote_types = true;
        }
        if let Some(applied) = self.applied.filter(|_| target.is_settled()) {
            writer.root_integer(root, "cur_cfg", applied);
            self.applied = None;
        }
    }

    /// Writes what is due of statistics.
    fn write_statistics(
        &mut self,
        target: &dyn Target,
        now: Instant,
        transaction: &mut Transaction,
    ) {
        let is_round = self.statistics.is_round_due(now);
        if is_round {
            let interval = self.statistics_interval();
            let all = self.watcher.interface_names();
            let all = all.map(|(b, i)| (b.to_owned(), i.to_owned()));
            self.statistics.begin(all, interval, now);
        }
        let slice = self.statistics.slice(now);
        let mut writer = StatusWriter {
            replica: self.client.replica(),
            tables: self.tables,
            transaction,
        };
        for (bridge, interface) in slice {
            let row = self.watcher.interface(&interface);
            let counted = target.interface_statistics(&bridge, &interface);
            if let Some((row, counted)) = row.zip(counted) {
                writer.statistics(row, &counted);
            }
        }
        if is_round {
            self.write_mirrors(target, &mut writer);
        }
    }

    fn write_mirrors(&self, target: &dyn Target, writer: &mut StatusWriter<'_>) {
        for (name, desired) in &self.watcher.desired().bridges {
            if desired.config.mirrors.is_empty() {
                continue;
            }
            let Some(bridge) = self.watcher.bridge(name) else {
                continue;
            };
            for (mirror, packets, bytes) in target.mirror_statistics(name) {
                let table = self.tables.mirror.id;
                let row = self.row_of(bridge, "mirrors", table, "name", &mirror);
                if let Some(row) = row {
                    writer.mirror(row, packets, bytes);
                }
            }
        }
    }

    fn controller_row(&self, bridge: Uuid, target: &str) -> Option<Uuid> {
        let table = self.tables.controller.id;
        self.row_of(bridge, "controller", table, "target", target)
    }

    /// The row of `table` among those in a bridge's `column` whose column `key` has `value`.
    fn row_of(
        &self,
        bridge: Uuid,
        column: &str,
        table: TableId,
        key: &str,
        value: &str,
    ) -> Option<Uuid> {
        let replica = self.client.replica();
        let bridges = self.tables.bridge.id;
        let column = replica.layout()[bridges].column(column)?;
        let key = replica.layout()[table].column(key)?;
        let set = replica.row(bridges, bridge)?.get(column).as_set();
        set.iter().find_map(|atom| match atom {
            Atom::Uuid(uuid) => {
                let row = replica.row(table, *uuid)?;
                (row.get(key).as_str() == Some(value)).then_some(*uuid)
            }
            _ => None,
        })
    }

    fn finish(&mut self, ticket: Ticket, outcome: &Outcome) {
        if self.status_ticket == Some(ticket) {
            self.status_ticket = None;
            self.after_status(outcome, Changes::default());
        }
    }

    /// Status that was not written is written again.
    fn after_status(&mut self, outcome: &Outcome, pending: Changes) {
        match outcome {
            Outcome::Unchanged | Outcome::Success(_) => {}
            Outcome::TryAgain | Outcome::NotLocked => self.write_everything_again(pending),
            Outcome::Error(error) => {
                log::warn!(target: "bridge", "status could not be written: {error}");
                self.write_everything_again(pending);
            }
        }
    }

    fn write_everything_again(&mut self, pending: Changes) {
        self.pending.interfaces.extend(pending.interfaces);
        self.pending.bridges.extend(pending.bridges);
        let all = self.watcher.interface_names();
        let all = all.map(|(b, i)| (b.to_string(), i.to_string()));
        self.pending.interfaces.extend(all);
        self.pending
            .bridges
            .extend(self.watcher.desired().bridges.keys().cloned());
        self.applied = self.root().map(|row| self.integer(row, "next_cfg"));
        self.wrote_types = false;
    }
}

impl Default for Bridges {
    fn default() -> Self {
        Self::new()
    }
}
