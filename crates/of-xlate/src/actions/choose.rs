//! `bundle` and `multipath`: one of several by hash.

use net_flow::PortNo;
use of_wire::Action;
use of_wire::action::{Bundle, BundleAlgorithm, Multipath, MultipathAlgorithm};

use crate::ctx::Ctx;
use crate::hash::WordHash;

/// How often `iter_hash` tries before it takes any.
const TRIES: u32 = 8;

/// The score of alternative `at` for packets of hash `hash` (highest random weight).
fn score(hash: u32, at: u32) -> u32 {
    let mut score = WordHash::new(u64::from(hash));
    score.add(u64::from(at));
    score.finish()
}

/// The link of `links` that a hash leads to.
fn link(algorithm: MultipathAlgorithm, hash: u32, links: u32, arg: u32) -> u32 {
    match algorithm {
        MultipathAlgorithm::ModuloN => hash % links,
        // Equal ranges; one alone would be a range of more than 32 bits.
        MultipathAlgorithm::HashThreshold => ((u64::from(hash) * u64::from(links)) >> 32) as u32,
        MultipathAlgorithm::Hrw => (0..links)
            .max_by_key(|at| score(hash, *at))
            .unwrap_or_default(),
        MultipathAlgorithm::IterHash => {
            let range = arg.max(links);
            let mut tries = (0..TRIES).map(|n| score(hash, n) % range);
            tries.find(|at| *at < links).unwrap_or(hash % links)
        }
    }
}

impl Ctx<'_> {
    /// Sends to, or writes into a field, a live port of several.
    pub(crate) fn bundle(&mut self, bundle: &Bundle, action: &Action, last: bool) {
        let live = |ctx: &Self, port: &PortNo| ctx.is_port_live(*port);
        let members = bundle.members.iter();
        let port = match bundle.algorithm {
            BundleAlgorithm::ActiveBackup => members.copied().find(|port| live(self, port)),
            BundleAlgorithm::Hrw => {
                let hash = self.flow.hash(bundle.fields, u32::from(bundle.basis));
                let members = members.copied().zip(0..);
                let live = members.filter(|(port, _)| live(self, port));
                let best = live.max_by_key(|(_, at)| score(hash, *at));
                best.map(|(port, _)| port)
            }
        };
        let port = port.unwrap_or(PortNo::NONE);
        match bundle.dst {
            Some(part) => self.write_result(part, u128::from(port.0 & 0xffff), action),
            None if port == PortNo::NONE => {}
            None => self.output(port, 0, false, last),
        }
    }

    /// Writes the number of a link into a field.
    pub(crate) fn multipath(&mut self, multipath: &Multipath, action: &Action) {
        let basis = u32::from(multipath.basis);
        let hash = self.flow.hash(multipath.fields, basis);
        let links = u32::from(multipath.max_link) + 1;
        let value = link(multipath.algorithm, hash, links, multipath.arg);
        self.write_result(multipath.dst, u128::from(value), action);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [MultipathAlgorithm; 4] = [
        MultipathAlgorithm::ModuloN,
        MultipathAlgorithm::HashThreshold,
        MultipathAlgorithm::Hrw,
        MultipathAlgorithm::IterHash,
    ];

    fn hash(n: u32) -> u32 {
        score(n, 0)
    }

    #[test]
    fn every_link_gets_its_share() {
        const HASHES: u32 = 20_000;
        for algorithm in ALL {
            for links in 1..20 {
                let mut shares = vec![0u32; links as usize];
                for n in 0..HASHES {
                    shares[link(algorithm, hash(n), links, 32) as usize] += 1;
                }
                let fair = HASHES / links;
                let ok = shares.iter().all(|s| s.abs_diff(fair) < fair / 4);
                assert!(ok, "{algorithm:?} {links}: {shares:?}");
            }
        }
    }

    /// Only what must moves when links are added: 1/(n+1) by weight, half by ranges.
    #[test]
    fn few_flows_move_when_a_link_is_added() {
        const HASHES: u32 = 20_000;
        for (algorithm, most) in [
            (MultipathAlgorithm::HashThreshold, 0.55),
            (MultipathAlgorithm::Hrw, 0.14),
            (MultipathAlgorithm::IterHash, 0.14),
        ] {
            let moves = |n: &u32| {
                let to = |links| link(algorithm, hash(*n), links, 16);
                to(8) != to(9)
            };
            let moved = (0..HASHES).filter(moves).count();
            assert!(
                f64::from(moved as u32) < most * f64::from(HASHES),
                "{algorithm:?}: {moved}"
            );
        }
    }

    #[test]
    fn extremes_have_a_link() {
        for algorithm in ALL {
            for (hash, links) in [(0, 1), (u32::MAX, 1), (0, 65536), (u32::MAX, 65536)] {
                assert!(link(algorithm, hash, links, 0) < links);
                assert!(link(algorithm, hash, links, u32::MAX) < links);
            }
        }
    }
}
