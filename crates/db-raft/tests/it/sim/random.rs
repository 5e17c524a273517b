//! Random histories.

use super::{Weather, World};

/// Something goes wrong, or a command is given.
fn mishap(world: &mut World) {
    let count = world.nodes.len() as u64;
    let number = world.dice.below(count) as usize;
    let other = world.dice.below(count) as usize;
    let now = world.now;
    match world.dice.below(24) {
        0 => world.crash(number, true),
        1 => world.crash(number, false),
        2..=5 => (0..count as usize).for_each(|n| world.start(n)),
        6 if number != other => {
            world.cut.insert((number.min(other), number.max(other)));
        }
        7 | 8 => world.mend(),
        9 if number != other => world.flap(number, other),
        10 => {
            let half = world.dice.below(1 << count);
            for a in 0..count as usize {
                for b in a + 1..count as usize {
                    if (half >> a) & 1 != (half >> b) & 1 {
                        world.cut.insert((a, b));
                    }
                }
            }
        }
        11 | 12 => {
            world.nodes[number].compact(now);
            world.settle(number);
        }
        13 => {
            let jobs = world.dice.below(10) as usize;
            world.nodes[number].file.break_after(jobs);
        }
        14 if count < 7 && world.dice.one_in(2) => {
            world.join();
        }
        15 if world.dice.one_in(4) => {
            let sid = world.nodes[other].sid.to_string();
            if let Some(raft) = &mut world.nodes[number].raft {
                // Whether it can does not matter here.
                let _ = raft.command_kick(now, &sid);
            }
            world.settle(number);
        }
        16 if world.dice.one_in(4) => {
            if let Some(raft) = &mut world.nodes[number].raft {
                raft.leave(now);
            }
            world.settle(number);
        }
        17 => {
            if let Some(raft) = &mut world.nodes[number].raft {
                raft.hand_over("it is told to");
            }
            world.settle(number);
        }
        18 => {
            let millis = 500 + world.dice.below(1500);
            if let Some(raft) = &mut world.nodes[number].raft {
                // It may not lead, or have another change under way.
                let _ = raft.command_change_election_timer(now, millis);
            }
            world.settle(number);
        }
        19 => {
            if let Some(raft) = &mut world.nodes[number].raft {
                raft.force_election(now);
            }
            world.settle(number);
        }
        _ => {}
    }
}

/// A cluster of `size` servers in fair weather.
pub(crate) fn cluster(seed: u64, size: usize) -> World {
    let mut world = World::new(seed);
    for _ in 1..size {
        world.join();
    }
    assert!(
        world.pass_until(60_000, World::agrees),
        "seed {seed}: no cluster of {size}"
    );
    world
}

/// Clients write all the time while everything goes wrong; then all is well again, and the
/// cluster must work.  Returns how many writes succeeded.
fn history(seed: u64) -> u64 {
    let mut world = World::new(seed);
    let size = 1 + world.dice.below(5) as usize;
    for _ in 1..size {
        world.join();
    }
    world.pass(5000);
    world.weather = Weather {
        lost: [0, 100, 10, 4][world.dice.below(4) as usize],
        twice: [0, 50, 10][world.dice.below(3) as usize],
        late: [0, 50, 10][world.dice.below(3) as usize],
    };
    for _ in 0..60 {
        let millis = world.dice.below(500);
        for _ in 0..4 {
            world.pass(millis / 4);
            let number = world.dice.below(world.nodes.len() as u64) as usize;
            let count = [1, 1, 5][world.dice.below(3) as usize];
            world.propose_in_row(number, count);
        }
        mishap(&mut world);
    }
    recover(&mut world);
    world.checks.successes
}

/// All is well again: the cluster must come to agree, and take data from every server.
fn recover(world: &mut World) {
    let seed = world.seed;
    world.weather = Weather::default();
    world.mend();
    for number in 0..world.nodes.len() {
        world.nodes[number].file.heal();
        world.start(number);
    }
    if !world.pass_until(120_000, World::agrees) {
        panic!("seed {seed}: no agreement:\n{}", world.describe());
    }
    let members: Vec<usize> = {
        let members = world.members();
        members
            .iter()
            .filter_map(|node| world.find(node.sid))
            .collect()
    };
    for number in members {
        let before = world.checks.successes;
        let mut tries = 0;
        // It may be about to leave.
        while world.checks.successes == before && !world.nodes[number].gone {
            world.propose(number);
            world.pass(200);
            tries += 1;
            assert!(
                tries < 200,
                "seed {seed}: nothing can be written by way of {number}:\n{}",
                world.describe()
            );
        }
    }
    assert!(
        world.pass_until(60_000, World::agrees),
        "seed {seed}: no agreement at the end"
    );
}

/// Histories that went wrong once: servers that were being removed span, and one that held what its
/// leader had lost while it joined could neither vote for it nor be elected.
#[test]
fn what_went_wrong_once_goes_well() {
    for seed in [176, 894, 2661] {
        assert!(history(seed) > 0);
    }
}

#[test]
fn whatever_happens_nothing_committed_is_lost() {
    let successes: u64 = (0..testkit::cases(150))
        .map(|seed| history(u64::from(seed)))
        .sum();
    assert!(successes > 0);
}
