"""Makes a bridge through Python's IDL and watches what becomes of it: watch.py REMOTE SCHEMA.

Prints one line for each thing that came about as it should, and ends with status 1 at the
first that does not.
"""

import sys
import time

import ovs.db.idl
import ovs.poller

remote, schema = sys.argv[1:]
helper = ovs.db.idl.SchemaHelper(schema)
helper.register_all()
idl = ovs.db.idl.Idl(remote, helper)


def pump(transaction=None):
    poller = ovs.poller.Poller()
    idl.wait(poller)
    if transaction is not None:
        transaction.wait(poller)
    poller.timer_wait(100)
    poller.block()
    idl.run()


def until(what, condition):
    end = time.time() + 20
    while not condition():
        if time.time() > end:
            sys.exit("never: " + what)
        pump()
    print(what, flush=True)


def commit(what, fill, expected=ovs.db.idl.Transaction.SUCCESS):
    transaction = ovs.db.idl.Transaction(idl)
    fill(transaction)
    while (status := transaction.commit()) == ovs.db.idl.Transaction.INCOMPLETE:
        pump(transaction)
    if status != expected:
        sys.exit("%s: %s %s" % (what, status, transaction.get_error()))
    print(what, flush=True)
    return transaction


def rows(table):
    return list(idl.tables[table].rows.values())


def named(table, name):
    return next((row for row in rows(table) if row.name == name), None)


def add_bridge(transaction):
    interface = transaction.insert(idl.tables["Interface"])
    interface.name, interface.type = "br9", "internal"
    port = transaction.insert(idl.tables["Port"])
    port.name, port.interfaces = "br9", [interface]
    bridge = transaction.insert(idl.tables["Bridge"])
    bridge.name, bridge.datapath_type, bridge.ports = "br9", "netdev", [port]
    root = rows("Open_vSwitch")[0]
    root.verify("bridges")
    root.bridges = root.bridges + [bridge]
    root.increment("next_cfg")


def second_bridge(transaction):
    bridge = transaction.insert(idl.tables["Bridge"])
    bridge.name = "br9"
    rows("Open_vSwitch")[0].bridges = rows("Open_vSwitch")[0].bridges + [bridge]


def settings(transaction):
    bridge = named("Bridge", "br9")
    bridge.setkey("other_config", "mac-aging-time", "77")
    bridge.setkey("external_ids", "owner", "watch")
    bridge.fail_mode = "secure"


def drop_bridge(transaction):
    rows("Open_vSwitch")[0].delvalue("bridges", named("Bridge", "br9"))


until("connected", lambda: idl.has_ever_connected() and rows("Open_vSwitch"))
until("types are told", lambda: "netdev" in rows("Open_vSwitch")[0].datapath_types)
commit("bridge made", add_bridge)
wanted = rows("Open_vSwitch")[0].next_cfg
until("switch has taken it up", lambda: rows("Open_vSwitch")[0].cur_cfg >= wanted)
local = named("Interface", "br9")
until("ofport", lambda: local.ofport == [65534])
until("mac_in_use", lambda: len(local.mac_in_use) == 1)
until("datapath_id", lambda: len((named("Bridge", "br9").datapath_id or [""])[0]) == 16)
until("ifindex", lambda: local.ifindex)
until("states", lambda: local.admin_state and local.link_state)
until("statistics", lambda: "rx_packets" in local.statistics)
commit("second of that name is refused", second_bridge, ovs.db.idl.Transaction.ERROR)
commit("settings", settings)
until("settings arrive", lambda: named("Bridge", "br9").other_config == {"mac-aging-time": "77"})
seen = idl.change_seqno
idl.force_reconnect()
until("connected again", lambda: idl.change_seqno != seen and named("Bridge", "br9"))
commit("bridge dropped", drop_bridge)
until("its rows are gone", lambda: named("Interface", "br9") is None)
idl.close()
print("done", flush=True)
