//! What `cluster/failure-test` makes go wrong, so that tests can see how a cluster copes.

use base::Instant;

use super::{Output, Raft, Role};

/// What goes wrong, once or from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureTest {
    /// The process ends before it sends entries.
    CrashBeforeSendingAppendRequest,
    /// The process ends after it has sent entries.
    CrashAfterSendingAppendRequest,
    /// The process ends before it answers another server's command.
    CrashBeforeSendingExecuteCommandReply,
    /// The process ends after it has answered another server's command.
    CrashAfterSendingExecuteCommandReply,
    /// The process ends before it passes a command on.
    CrashBeforeSendingExecuteCommandRequest,
    /// The process ends after it has passed a command on.
    CrashAfterSendingExecuteCommandRequest,
    /// The process ends when entries have come.
    CrashAfterReceivingAppendRequestUpdate,
    /// The process ends when a snapshot has come.
    CrashBeforeSendingInstallSnapshotReply,
    /// Elections are put off.
    DelayElection,
    /// Nobody is asked for a vote.
    DontSendVoteRequest,
    /// Nothing is sent to or taken from other servers.
    StopRaftRpc,
    /// The leader hands over once it has sent entries.
    TransferLeadershipAfterSendingAppendRequest,
    /// The leader hands over once it has begun to add a server.
    TransferLeadershipAfterStartingToAdd,
    /// The leader hands over.
    TransferLeadership,
}

impl FailureTest {
    /// The test of that name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "crash-before-sending-append-request" => Self::CrashBeforeSendingAppendRequest,
            "crash-after-sending-append-request" => Self::CrashAfterSendingAppendRequest,
            "crash-before-sending-execute-command-reply" => {
                Self::CrashBeforeSendingExecuteCommandReply
            }
            "crash-after-sending-execute-command-reply" => {
                Self::CrashAfterSendingExecuteCommandReply
            }
            "crash-before-sending-execute-command-request" => {
                Self::CrashBeforeSendingExecuteCommandRequest
            }
            "crash-after-sending-execute-command-request" => {
                Self::CrashAfterSendingExecuteCommandRequest
            }
            "crash-after-receiving-append-request-update" => {
                Self::CrashAfterReceivingAppendRequestUpdate
            }
            "crash-before-sending-install-snapshot-reply" => {
                Self::CrashBeforeSendingInstallSnapshotReply
            }
            "delay-election" => Self::DelayElection,
            "dont-send-vote-request" => Self::DontSendVoteRequest,
            "stop-raft-rpc" => Self::StopRaftRpc,
            "transfer-leadership-after-sending-append-request" => {
                Self::TransferLeadershipAfterSendingAppendRequest
            }
            "transfer-leadership-after-starting-to-add" => {
                Self::TransferLeadershipAfterStartingToAdd
            }
            "transfer-leadership" => Self::TransferLeadership,
            _ => return None,
        })
    }
}

impl Raft {
    /// Sets what goes wrong; `None` lets all be well again.
    pub fn set_test(&mut self, now: Instant, test: Option<FailureTest>) {
        self.now = now;
        self.test = test;
        if test == Some(FailureTest::DelayElection) && self.role == Role::Follower {
            self.reset_election_timer();
        }
    }

    /// Whether nothing is to be sent to or taken from other servers.
    pub fn is_mute(&self) -> bool {
        self.test == Some(FailureTest::StopRaftRpc)
    }

    /// Begins an election at once.
    pub fn force_election(&mut self, now: Instant) {
        self.now = now;
        if self.role != Role::Leader {
            self.start_election(true, false);
        }
    }

    pub(super) fn crash(&mut self, words: &'static str) {
        self.test = None;
        self.outputs.push_back(Output::Crash(words));
    }
}
