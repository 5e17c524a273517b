//! The server's control commands.

use std::path::Path;

use io::Commands;

use crate::daemon::Daemon;

/// Registers the commands.
pub(crate) fn register(commands: &mut Commands<Daemon>) {
    io::control::builtin::register_memory(commands, |daemon: &mut Daemon| daemon.state.memory());
    register_databases(commands);
    register_remotes(commands);
    register_sync(commands);
    crate::cluster::control::register(commands);
    commands.answer("ovsdb-server/perf-counters-show", "", 0, 0, |_, _| {
        Ok("performance counter is not supported on this platform\n".to_owned())
    });
    commands.answer("ovsdb-server/perf-counters-clear", "", 0, 0, |_, _| {
        Ok(String::new())
    });
    commands.answer(
        "ovsdb-server/disable-monitor-cond",
        "",
        0,
        0,
        |daemon, _| {
            log::info!(target: "ovsdb_server", "user ran ovsdb-server/disable-monitor-cond");
            daemon.state.server.disable_monitor_cond();
            daemon.state.reconnect = true;
            Ok(String::new())
        },
    );
    commands.answer(
        "ovsdb-server/memory-trim-on-compaction",
        "on|off",
        1,
        1,
        |_, args| match args[0].as_str() {
            // Memory goes back to the system when it is freed, compaction or not.
            "on" | "off" => Ok(String::new()),
            _ => Err("invalid argument".to_owned()),
        },
    );
    commands.answer("ovsdb-server/reload", "", 0, 0, |daemon, _| {
        daemon.reload().map(|()| String::new())
    });
}

/// Registers the command that makes up for `--disable-file-column-diff`, once all servers that
/// read the file know differences.
pub(crate) fn register_column_diff(commands: &mut Commands<Daemon>) {
    commands.answer("ovsdb/file/column-diff-enable", "", 0, 0, |daemon, _| {
        daemon.state.server.set_record_differences(true);
        Ok(String::new())
    });
}

fn register_databases(commands: &mut Commands<Daemon>) {
    commands.answer("ovsdb-server/add-db", "DB", 1, 1, |daemon, args| {
        daemon.change_setup(|daemon| {
            let now = daemon.now();
            let (file, config) = daemon.services.config_for(Path::new(&args[0]));
            let added = daemon.services.open(&mut daemon.state, now, &file, &config);
            added.map_err(|error| error.to_string())
        })?;
        Ok(String::new())
    });
    commands.answer("ovsdb-server/remove-db", "DB", 1, 1, |daemon, args| {
        daemon.change_setup(|daemon| daemon.services.remove(&mut daemon.state, &args[0]))?;
        Ok(String::new())
    });
    commands.answer("ovsdb-server/list-dbs", "", 0, 0, |daemon, _| {
        let names = daemon.state.server.database_names();
        Ok(names.map(|name| format!("{name}\n")).collect())
    });
    commands.answer(
        "ovsdb-server/get-db-storage-status",
        "DB",
        1,
        1,
        |daemon, args| {
            let status = daemon.state.server.storage_status(&args[0]);
            let status = status.ok_or_else(|| "Failed to find the database.".to_owned())?;
            Ok(format!("status: {status}\n"))
        },
    );
    commands.register("ovsdb-server/compact", "", 0, 1, |daemon, call| {
        let now = daemon.now();
        let name = call.args.first().map(String::as_str);
        match daemon.state.server.compact(now, name) {
            // Whoever asks wants to see the smaller file.
            Ok(()) => match daemon.state.server.drain_clusters(now) {
                Ok(()) => daemon
                    .compactions
                    .push((name.map(str::to_owned), call.responder)),
                Err(error) => call.responder.error(format!("{error}\n")),
            },
            Err(error) => call.responder.error(error),
        }
    });
    commands.answer("ovsdb-server/tlog-list", "", 0, 0, |daemon, _| {
        Ok(daemon.state.server.list_table_logs())
    });
    commands.answer(
        "ovsdb-server/tlog-set",
        "DB:TABLE on|off",
        2,
        2,
        |daemon, args| {
            let server = &mut daemon.state.server;
            server.set_table_log(&args[0], &args[1])?;
            Ok(String::new())
        },
    );
}

fn register_remotes(commands: &mut Commands<Daemon>) {
    commands.answer("ovsdb-server/add-remote", "REMOTE", 1, 1, |daemon, args| {
        daemon.change_setup(|daemon| daemon.state.add_remote(&args[0]))?;
        Ok(String::new())
    });
    commands.answer(
        "ovsdb-server/remove-remote",
        "REMOTE",
        1,
        1,
        |daemon, args| {
            daemon.change_setup(|daemon| daemon.state.remove_remote(&args[0]))?;
            Ok(String::new())
        },
    );
    commands.answer("ovsdb-server/list-remotes", "", 0, 0, |daemon, _| {
        Ok(daemon
            .state
            .names
            .iter()
            .map(|n| format!("{n}\n"))
            .collect())
    });
    commands.answer("ovsdb-server/reconnect", "", 0, 0, |daemon, _| {
        log::info!(target: "ovsdb_server", "user ran ovsdb-server/reconnect");
        daemon.state.reconnect = true;
        Ok(String::new())
    });
}

fn register_sync(commands: &mut Commands<Daemon>) {
    commands.answer("ovsdb-server/sync-status", "", 0, 0, |daemon, _| {
        Ok(daemon.services.sync_status(&daemon.state))
    });
    commands.answer(
        "ovsdb-server/set-active-ovsdb-server",
        "",
        1,
        1,
        |daemon, args| {
            daemon.change_setup(|daemon| {
                daemon.services.set_active(&args[0]);
                Ok(())
            })?;
            Ok(String::new())
        },
    );
    commands.answer(
        "ovsdb-server/get-active-ovsdb-server",
        "",
        0,
        0,
        |daemon, _| Ok(daemon.services.sync.from.clone().unwrap_or_default()),
    );
    commands.answer(
        "ovsdb-server/connect-active-ovsdb-server",
        "",
        0,
        0,
        |daemon, _| {
            let mut connected = false;
            daemon.change_setup(|daemon| {
                connected = daemon.services.connect_active(&mut daemon.state);
                Ok(())
            })?;
            let nowhere = "Unable to connect: active server is not specified.\n";
            Ok(if connected { "" } else { nowhere }.to_owned())
        },
    );
    commands.answer(
        "ovsdb-server/disconnect-active-ovsdb-server",
        "",
        0,
        0,
        |daemon, _| {
            daemon.change_setup(|daemon| {
                daemon.services.disconnect_active(&mut daemon.state);
                Ok(())
            })?;
            Ok(String::new())
        },
    );
    register_probes(commands);
    commands.answer(
        "ovsdb-server/set-sync-exclude-tables",
        "",
        0,
        1,
        |daemon, args| {
            let list = args.first().map_or("", String::as_str);
            daemon.change_setup(|daemon| {
                daemon.services.set_excluded(&mut daemon.state, list);
                Ok(())
            })?;
            Ok(String::new())
        },
    );
    commands.answer(
        "ovsdb-server/get-sync-exclude-tables",
        "",
        0,
        0,
        |daemon, _| Ok(daemon.services.sync.exclude.clone().unwrap_or_default()),
    );
}

fn register_probes(commands: &mut Commands<Daemon>) {
    commands.answer(
        "ovsdb-server/set-active-ovsdb-server-probe-interval",
        "",
        1,
        1,
        |daemon, args| {
            daemon.change_setup(|daemon| {
                let services = &mut daemon.services;
                services.set_backup_probe(&mut daemon.state, &args[0])
            })?;
            Ok(String::new())
        },
    );
    commands.answer(
        "ovsdb-server/set-relay-source-probe-interval",
        "",
        1,
        1,
        |daemon, args| {
            daemon.change_setup(|daemon| {
                let services = &mut daemon.services;
                services.set_relay_probe(&mut daemon.state, &args[0])
            })?;
            Ok(String::new())
        },
    );
}
