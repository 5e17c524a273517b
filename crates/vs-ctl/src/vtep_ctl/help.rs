//! The text of `vtep-ctl --help`.

use db_client::Layout;

use crate::Env;
use crate::ctl::names::{RowName, describe};
use crate::ctl::usage::Help;

/// The whole text.
pub(super) fn text(env: &Env<'_>, layout: &Layout, names: &[RowName]) -> String {
    Help {
        title: "VTEP configuration utility",
        commands: COMMANDS,
        rows: &describe(layout, names),
        options: OPTIONS,
        no_syslog: "  --no-syslog                 equivalent to --verbose=vtep_ctl:syslog:warn\n",
        bootstrap: "",
    }
    .text(env)
}

/// The commands, in groups.
const COMMANDS: &str = "\
VTEP commands:
  show                        print overview of database contents

Manager commands:
  get-manager                 print the managers
  del-manager                 delete the managers
  [--inactivity-probe=MSECS]
  set-manager TARGET...       set the list of managers to TARGET...

Physical Switch commands:
  add-ps PS                   create a new physical switch named PS
  del-ps PS                   delete PS and all of its ports
  list-ps                     print the names of all the physical switches
  ps-exists PS                exit 2 if PS does not exist

Port commands:
  list-ports PS               print the names of all the ports on PS
  add-port PS PORT            add network device PORT to PS
  del-port PS PORT            delete PORT from PS

Logical Switch commands:
  add-ls LS                   create a new logical switch named LS
  del-ls LS                   delete LS and all of its ports
  list-ls                     print the names of all the logical switches
  ls-exists LS                exit 2 if LS does not exist
  bind-ls PS PORT VLAN LS     bind LS to VLAN on PORT
  unbind-ls PS PORT VLAN      unbind logical switch on VLAN from PORT
  list-bindings PS PORT       list bindings for PORT on PS
  set-replication-mode LS MODE  set replication mode on LS
  get-replication-mode LS       get replication mode on LS

Logical Router commands:
  add-lr LR                   create a new logical router named LR
  del-lr LR                   delete LR
  list-lr                     print the names of all the logical routers
  lr-exists LR                exit 2 if LR does not exist

MAC binding commands:
  add-ucast-local LS MAC [ENCAP] IP   add ucast local entry in LS
  del-ucast-local LS MAC              del ucast local entry from LS
  add-mcast-local LS MAC [ENCAP] IP   add mcast local entry in LS
  del-mcast-local LS MAC [ENCAP] IP   del mcast local entry from LS
  clear-local-macs LS                 clear local mac entries
  list-local-macs LS                  list local mac entries
  add-ucast-remote LS MAC [ENCAP] IP  add ucast remote entry in LS
  del-ucast-remote LS MAC             del ucast remote entry from LS
  add-mcast-remote LS MAC [ENCAP] IP  add mcast remote entry in LS
  del-mcast-remote LS MAC [ENCAP] IP  del mcast remote entry from LS
  clear-remote-macs LS                clear remote mac entries
  list-remote-macs LS                 list remote mac entries

";

/// The general options; `{db}` stands for the default database.
const OPTIONS: &str = "\
Options:
  --db=DATABASE               connect to DATABASE
                              (default: {db})
  -t, --timeout=SECS          wait at most SECS seconds
  --dry-run                   do not commit changes to database
  --oneline                   print exactly one line of output per command

";
