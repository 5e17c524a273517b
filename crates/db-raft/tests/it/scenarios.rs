//! Clusters in fair weather, and with one thing wrong at a time.

use crate::sim::{World, cluster};

#[test]
fn a_cluster_of_one_leads_itself() {
    let mut world = World::new(1);
    assert!(world.pass_until(100, World::agrees));
    assert!(world.propose(0).is_some());
    world.pass(100);
    assert_eq!(world.checks.successes, 1);
}

#[test]
fn servers_join_and_take_writes() {
    for size in [2, 3, 5, 7] {
        let mut world = cluster(size as u64, size);
        for number in 0..size {
            assert!(world.propose(number).is_some(), "{number} of {size}");
            world.pass(1000);
            assert_eq!(world.checks.successes, number as u64 + 1);
        }
        assert!(world.agrees());
    }
}

#[test]
fn what_follows_something_uncommitted_is_taken() {
    for number in 0..3 {
        let mut world = cluster(12, 3);
        let mut last = world.propose(number).expect("accepted");
        for _ in 1..100 {
            world.pass(2);
            last = world.propose_after(number, last).expect("accepted");
        }
        world.pass(100);
        assert_eq!(world.checks.successes, 100);
        // All that takes less than a ping interval.
        assert!(world.reassured <= 5, "{}", world.reassured);
    }
}

#[test]
fn who_waits_for_a_command_hears_of_it() {
    let mut world = cluster(13, 5);
    let leader = world.leaders()[0];
    for number in 2..5 {
        world.crash((leader + number) % 5, false);
    }
    let by = (leader + 1) % 5;
    assert!(world.propose(by).is_some());
    // It cannot be committed, and the leader does not know why yet.
    world.pass(800);
    assert!((1..=3).contains(&world.reassured), "{}", world.reassured);
}

#[test]
fn a_late_server_is_sent_the_snapshot() {
    let mut world = cluster(3, 3);
    let now = world.now;
    world.crash(2, false);
    for _ in 0..20 {
        world.propose(0);
        world.pass(100);
    }
    world.nodes[0].compact(now);
    world.settle(0);
    world.start(2);
    assert!(world.pass_until(10_000, World::agrees));
    assert_eq!(world.nodes[2].hash, world.nodes[0].hash);
}

#[test]
fn when_the_leader_goes_another_leads() {
    let mut world = cluster(4, 3);
    let leader = world.leaders()[0];
    world.crash(leader, true);
    assert!(world.pass_until(10_000, |w| w.leaders().len() == 1));
    assert_ne!(world.leaders(), [leader]);
    world.start(leader);
    assert!(world.pass_until(10_000, World::agrees));
}

#[test]
fn a_leader_that_hands_over_is_followed_at_once() {
    let mut world = cluster(5, 3);
    let leader = world.leaders()[0];
    let now = world.now;
    if let Some(raft) = &mut world.nodes[leader].raft {
        raft.hand_over("of a test");
    }
    world.settle(leader);
    // Without that it would take an election timeout, a second at least.
    assert!(world.pass_until(100, World::agrees));
    assert_ne!(world.leaders(), [leader]);
    assert!(world.now.since(now).as_millis() < 100);
}

#[test]
fn a_server_that_is_cut_off_disturbs_nobody_when_it_is_back() {
    let mut world = cluster(6, 3);
    let leader = world.leaders()[0];
    let other = (leader + 1) % 3;
    let term = |world: &World| world.nodes[leader].raft.as_ref().map(|r| r.term());
    let before = term(&world);
    for number in (0..3).filter(|n| *n != other) {
        world.cut.insert((number.min(other), number.max(other)));
    }
    world.pass(30_000);
    let raft = world.nodes[other].raft.as_ref();
    assert!(raft.is_some_and(|raft| !raft.is_connected()));
    world.mend();
    assert!(world.pass_until(10_000, World::agrees));
    assert_eq!(world.leaders(), [leader]);
    assert_eq!(term(&world), before);
}

#[test]
fn a_leader_without_followers_gives_up() {
    let mut world = cluster(7, 3);
    let leader = world.leaders()[0];
    for number in (0..3).filter(|n| *n != leader) {
        world.cut.insert((number.min(leader), number.max(leader)));
    }
    world.pass(10_000);
    assert_eq!(world.leaders().len(), 1);
    assert_ne!(world.leaders(), [leader]);
    let raft = world.nodes[leader].raft.as_ref();
    assert!(raft.is_some_and(|raft| !raft.is_connected()));
}

#[test]
fn servers_leave_one_by_one() {
    let mut world = cluster(8, 5);
    for left in 1..5 {
        let leader = world.leaders()[0];
        let now = world.now;
        if let Some(raft) = &mut world.nodes[leader].raft {
            raft.leave(now);
        }
        world.settle(leader);
        assert!(world.pass_until(20_000, |w| w.nodes[leader].gone), "{left}");
        assert!(world.pass_until(20_000, World::agrees), "{left}");
    }
    let last = world.leaders()[0];
    assert!(world.propose(last).is_some());
    world.pass(100);
    assert_eq!(world.checks.successes, 1);
}

#[test]
fn a_server_is_kicked_by_way_of_another() {
    let mut world = cluster(9, 4);
    let leader = world.leaders()[0];
    let (by, target) = ((leader + 1) % 4, (leader + 2) % 4);
    let (now, sid) = (world.now, world.nodes[target].sid.to_string());
    let raft = world.nodes[by].raft.as_mut().expect("up");
    let said = raft.command_kick(now, &sid[..8]);
    assert_eq!(said.as_deref(), Ok("sent removal request to leader"));
    let unknown = raft.command_kick(now, "zzzz");
    assert_eq!(
        unknown.as_deref().map_err(String::as_str),
        Err("unknown server")
    );
    world.settle(by);
    assert!(world.pass_until(10_000, |w| w.nodes[target].gone));
    assert!(world.pass_until(10_000, World::agrees));
}

#[test]
fn the_election_timer_changes_on_all_servers_and_stays() {
    let mut world = cluster(10, 3);
    let leader = world.leaders()[0];
    let now = world.now;
    let raft = world.nodes[leader].raft.as_mut().expect("up");
    let said = raft.command_change_election_timer(now, 2001);
    let too_long = "election timer increase should not exceed the current value x 2.";
    assert_eq!(said, Err(too_long.to_owned()));
    let said = raft.command_change_election_timer(now, 2000);
    assert_eq!(said, Ok("change of election timer initiated."));
    let said = raft.command_change_election_timer(now, 1500);
    assert_eq!(said, Err("election timer change pending.".to_owned()));
    world.settle(leader);
    world.pass(1000);
    for number in 0..3 {
        world.nodes[number].compact(world.now);
        world.settle(number);
        world.crash(number, false);
        world.start(number);
    }
    for node in &world.nodes {
        let raft = node.raft.as_ref().expect("up");
        assert_eq!(raft.election_timer(), 2000);
    }
    let late = world.join();
    assert!(world.pass_until(20_000, World::agrees));
    let raft = world.nodes[late].raft.as_ref().expect("up");
    assert_eq!(raft.election_timer(), 2000);
}

#[test]
fn what_a_server_cannot_write_it_does_not_promise() {
    let mut world = cluster(11, 3);
    let leader = world.leaders()[0];
    let follower = (leader + 1) % 3;
    world.nodes[follower].file.break_after(0);
    world.propose(leader);
    world.pass(10);
    assert!(!world.nodes[follower].is_up(), "it has failed");
    assert_eq!(world.checks.successes, 1);
    world.start(follower);
    assert!(world.pass_until(10_000, World::agrees));
}
