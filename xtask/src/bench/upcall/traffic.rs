//! Packets for a switch: probes, of which each tells how long it took, and floods.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use net_netlink::route::LinkRef;
use net_nlsock::route::Routes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::netns::NetNs;
use sys::probe_socket::{BATCH, ProbeSocket};

/// Ethernet types for local experiments (IEEE 802): probes and floods are told apart by them.
const PROBE: u16 = 0x88b5;
const FLOOD: u16 = 0x88b6;

/// Length of all frames.
const LENGTH: usize = 64;

/// How long late probes are waited for.
const LINGER: Duration = Duration::from_secs(1);

/// Counts addresses, so that none is used twice.
static ADDRESS: AtomicU32 = AtomicU32::new(0);

/// Which source addresses frames have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    /// One for each device.
    Fixed,
    /// A new one in each frame.
    New,
}

/// A row of probes.
pub(super) struct Probe<'a> {
    /// The namespace of all devices.
    pub(super) netns: &'a NetNs,
    /// The device that probes arrive at.
    pub(super) to: &'a str,
    /// The devices that send, in turn.
    pub(super) from: &'a [String],
    /// Probes of all devices together.
    pub(super) count: u32,
    /// Time between two.
    pub(super) interval: Duration,
    pub(super) addresses: Addresses,
    /// The processor that sends; any if not said.
    pub(super) cpu: Option<usize>,
}

/// What became of a row of probes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) sent: u32,
    /// Microseconds that each probe took that came, by sending device.
    pub(super) took: Vec<Vec<f64>>,
}

impl Outcome {
    /// Probes that did not come.
    pub(super) fn lost(&self) -> u32 {
        let came: usize = self.took.iter().map(Vec::len).sum();
        self.sent
            .saturating_sub(u32::try_from(came).unwrap_or(u32::MAX))
    }

    /// Probes of a hundred that did not come.
    pub(super) fn loss(&self) -> f64 {
        f64::from(self.lost()) * 100.0 / f64::from(self.sent.max(1))
    }

    fn sorted(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.took.iter().flatten().copied().collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// The mean of those that came.
    pub(super) fn mean(&self) -> Option<f64> {
        mean(&self.sorted())
    }

    /// The 99th percentile of those that came.
    pub(super) fn p99(&self) -> Option<f64> {
        let all = self.sorted();
        all.get(all.len() * 99 / 100).copied()
    }

    /// The standard deviation of the devices' means, in percent of their mean.
    pub(super) fn deviation(&self) -> Option<f64> {
        let means: Vec<f64> = self.took.iter().filter_map(|t| mean(t)).collect();
        let middle = mean(&means)?;
        let squares: Vec<f64> = means.iter().map(|m| (m - middle).powi(2)).collect();
        Some(mean(&squares)?.sqrt() * 100.0 / middle)
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// A socket on a device, for frames of a type or for sending alone.
fn socket(netns: &NetNs, device: &str, ethertype: u16) -> Result<ProbeSocket, String> {
    let open = || {
        let index = Routes::open()?.link(LinkRef::Name(device))?.index;
        ProbeSocket::open(index, ethertype)
    };
    let opened = netns.run(open).and_then(|socket| socket);
    opened.map_err(|e| format!("{device}: {e}"))
}

/// A frame of `device`, with a place for what a probe says.
fn frame(ethertype: u16, device: u32, addresses: Addresses) -> [u8; LENGTH] {
    let mut frame = [0; LENGTH];
    let kind = if ethertype == PROBE { 0xbb } else { 0xdd };
    frame[..6].copy_from_slice(&[2, 0xaa, 0, 0, 0, 1]);
    frame[6..8].copy_from_slice(&[2, kind]);
    let address = match addresses {
        Addresses::Fixed => device,
        // A bijection, so that neighbours in time are not neighbours in the switch's tables.
        Addresses::New => ADDRESS
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_mul(2_654_435_761),
    };
    frame[8..12].copy_from_slice(&address.to_be_bytes());
    frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
    frame[14..18].copy_from_slice(&device.to_be_bytes());
    frame
}

/// Which device sent a probe, and when.
fn parse(frame: &[u8]) -> Option<(usize, Duration)> {
    let device = u32::from_be_bytes(frame.get(14..18)?.try_into().ok()?);
    let sent = u64::from_be_bytes(frame.get(18..26)?.try_into().ok()?);
    Some((device as usize, Duration::from_nanos(sent)))
}

impl Probe<'_> {
    /// Sends the probes and waits for them.
    ///
    /// # Errors
    /// A device or the system refuses.
    pub(super) fn run(&self) -> Result<Outcome, String> {
        let receiver = socket(self.netns, self.to, PROBE)?;
        let senders = self.from.iter().map(|d| socket(self.netns, d, 0));
        let senders = senders.collect::<Result<Vec<_>, _>>()?;
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let taking = scope.spawn(|| take(&receiver, senders.len(), &done));
            let sending = scope.spawn(|| {
                let sent = self.send(&senders);
                std::thread::sleep(LINGER);
                done.store(true, Ordering::Relaxed);
                sent
            });
            let sent = sending.join().map_err(|_| "the sender panicked")??;
            let took = taking.join().map_err(|_| "the receiver panicked")??;
            Ok(Outcome { sent, took })
        })
    }

    fn send(&self, senders: &[ProbeSocket]) -> Result<u32, String> {
        pin(self.cpu)?;
        let mut sent = 0;
        for number in 0..self.count {
            let device = number as usize % senders.len();
            let mut frame = frame(PROBE, device as u32, self.addresses);
            let now = sys::clock::wall().as_nanos() as u64;
            frame[18..26].copy_from_slice(&now.to_be_bytes());
            // A device that is full loses it as any other frame.
            if senders[device].send(&[frame]).is_ok() {
                sent += 1;
            }
            std::thread::sleep(self.interval);
        }
        Ok(sent)
    }
}

fn pin(cpu: Option<usize>) -> Result<(), String> {
    cpu.map_or(Ok(()), |cpu| sys::thread::pin(&[cpu]))
        .map_err(|e| format!("CPU: {e}"))
}

/// Takes probes until all are done.
fn take(socket: &ProbeSocket, devices: usize, done: &AtomicBool) -> Result<Vec<Vec<f64>>, String> {
    let mut took = vec![Vec::new(); devices];
    let tick = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    let mut buffer = [0; LENGTH];
    while !done.load(Ordering::Relaxed) {
        poll(
            &mut [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)],
            Some(&tick),
        )
        .map_err(|e| format!("poll: {e}"))?;
        while let Some((length, at)) = socket
            .receive(&mut buffer)
            .map_err(|e| format!("receiving: {e}"))?
        {
            if let Some((device, sent)) = parse(&buffer[..length])
                && let Some(took) = took.get_mut(device)
            {
                took.push(at.saturating_sub(sent).as_secs_f64() * 1e6);
            }
        }
    }
    Ok(took)
}

/// Frames from several devices as fast as one thread sends them, until it is stopped.
pub(super) struct Flood {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<u64, String>>>,
}

impl Flood {
    /// Starts it.
    ///
    /// # Errors
    /// A device or the system refuses.
    pub(super) fn start(
        netns: &NetNs,
        from: &[String],
        addresses: Addresses,
        cpu: Option<usize>,
    ) -> Result<Self, String> {
        let senders = from.iter().map(|d| socket(netns, d, 0));
        let senders = senders.collect::<Result<Vec<_>, _>>()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            pin(cpu)?;
            let mut sent = 0;
            while !stopped.load(Ordering::Relaxed) {
                for (device, sender) in senders.iter().enumerate() {
                    let frames: [[u8; LENGTH]; BATCH] =
                        std::array::from_fn(|_| frame(FLOOD, device as u32, addresses));
                    // A device that is full takes the next ones.
                    sent += sender.send(&frames).unwrap_or(0) as u64;
                }
            }
            Ok(sent)
        });
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Ends it; how many frames were sent.
    ///
    /// # Errors
    /// It could not send at all.
    pub(super) fn stop(mut self) -> Result<u64, String> {
        self.end().unwrap_or(Ok(0))
    }

    fn end(&mut self) -> Option<Result<u64, String>> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        Some(
            thread
                .join()
                .unwrap_or_else(|_| Err("the flood panicked".into())),
        )
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        // Its error, if any, was of no interest to whoever dropped it.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_say_who_sent_them_and_when() {
        let mut probe = frame(PROBE, 7, Addresses::Fixed);
        probe[18..26].copy_from_slice(&5_000_000_001u64.to_be_bytes());
        let sent = Duration::new(5, 1);
        assert_eq!(parse(&probe), Some((7, sent)));
        assert_eq!(parse(&probe[..20]), None);
        assert_eq!(frame(PROBE, 7, Addresses::Fixed)[6..12], probe[6..12]);
        let [one, two] = [0, 0].map(|d| frame(FLOOD, d, Addresses::New));
        assert_ne!(one[6..12], two[6..12]);
    }

    #[test]
    fn outcomes_are_summed_up() {
        let outcome = Outcome {
            sent: 5,
            took: vec![vec![1.0, 3.0], vec![4.0, 4.0], vec![]],
        };
        assert_eq!((outcome.lost(), outcome.loss()), (1, 20.0));
        assert_eq!((outcome.mean(), outcome.p99()), (Some(3.0), Some(4.0)));
        // Means of 2 and 4.
        let deviation = outcome.deviation().unwrap();
        assert!((deviation - 100.0 / 3.0).abs() < 1e-9, "{deviation}");
        assert_eq!(Outcome::default().mean(), None);
        assert_eq!(Outcome::default().deviation(), None);
    }
}
