//! The text of `ovs-vsctl --help`.

use db_client::Layout;

use crate::Env;
use crate::ctl::names::{RowName, describe};
use crate::{ctl, usage};

/// The whole text.
pub(super) fn text(env: &Env<'_>, layout: &Layout, names: &[RowName]) -> String {
    ctl::usage::Help {
        title: "ovs-vswitchd management utility",
        commands: COMMANDS,
        rows: &describe(layout, names),
        options: OPTIONS,
        no_syslog: "  --no-syslog             equivalent to --verbose=vsctl:syslog:warn\n",
        bootstrap: usage::BOOTSTRAP,
    }
    .text(env)
}

/// The commands, in groups.
pub(super) const COMMANDS: &str = "\
Open vSwitch commands:
  init                        initialize database, if not yet initialized
  show                        print overview of database contents
  emer-reset                  reset configuration to clean state

Bridge commands:
  add-br BRIDGE               create a new bridge named BRIDGE
  add-br BRIDGE PARENT VLAN   create new fake BRIDGE in PARENT on VLAN
  del-br BRIDGE               delete BRIDGE and all of its ports
  list-br                     print the names of all the bridges
  br-exists BRIDGE            exit 2 if BRIDGE does not exist
  br-to-vlan BRIDGE           print the VLAN which BRIDGE is on
  br-to-parent BRIDGE         print the parent of BRIDGE
  br-set-external-id BRIDGE KEY VALUE  set KEY on BRIDGE to VALUE
  br-set-external-id BRIDGE KEY  unset KEY on BRIDGE
  br-get-external-id BRIDGE KEY  print value of KEY on BRIDGE
  br-get-external-id BRIDGE  list key-value pairs on BRIDGE

Port commands (a bond is considered to be a single port):
  list-ports BRIDGE           print the names of all the ports on BRIDGE
  add-port BRIDGE PORT        add network device PORT to BRIDGE
  add-bond BRIDGE PORT IFACE...  add bonded port PORT in BRIDGE from IFACES
  del-port [BRIDGE] PORT      delete PORT (which may be bonded) from BRIDGE
  port-to-br PORT             print name of bridge that contains PORT

Interface commands (a bond consists of multiple interfaces):
  list-ifaces BRIDGE          print the names of all interfaces on BRIDGE
  iface-to-br IFACE           print name of bridge that contains IFACE

Controller commands:
  get-controller BRIDGE      print the controllers for BRIDGE
  del-controller BRIDGE      delete the controllers for BRIDGE
  [--inactivity-probe=MSECS]
  set-controller BRIDGE TARGET...  set the controllers for BRIDGE
  get-fail-mode BRIDGE       print the fail-mode for BRIDGE
  del-fail-mode BRIDGE       delete the fail-mode for BRIDGE
  set-fail-mode BRIDGE MODE  set the fail-mode for BRIDGE to MODE

Manager commands:
  get-manager                print the managers
  del-manager                delete the managers
  [--inactivity-probe=MSECS]
  set-manager TARGET...      set the list of managers to TARGET...

SSL/TLS commands:
  get-ssl                     print the SSL/TLS configuration
  del-ssl                     delete the SSL/TLS configuration
  set-ssl PRIV-KEY CERT CA-CERT  set the SSL/TLS configuration

Auto Attach commands:
  add-aa-mapping BRIDGE I-SID VLAN   add Auto Attach mapping to BRIDGE
  del-aa-mapping BRIDGE I-SID VLAN   delete Auto Attach mapping VLAN from BRIDGE
  get-aa-mapping BRIDGE              get Auto Attach mappings from BRIDGE

Switch commands:
  emer-reset                  reset switch to known good state

Connection Tracking commands:
  set-zone-limit DATAPATH ZONE|default LIMIT
                              set CT LIMIT for ZONE|default on DATAPATH
  del-zone-limit DATAPATH ZONE|default
                              delete CT limit for ZONE|default on DATAPATH
  list-zone-limits DATAPATH   list all limits configured on DATAPATH

";

/// The general options; `{db}` stands for the default database.
pub(super) const OPTIONS: &str = "\
Options:
  --db=DATABASE               connect to DATABASE
                              (default: {db})
  --no-wait                   do not wait for ovs-vswitchd to reconfigure
  --retry                     keep trying to connect to server forever
  -t, --timeout=SECS          wait at most SECS seconds for ovs-vswitchd
  --dry-run                   do not commit changes to database
  --oneline                   print exactly one line of output per command

";
