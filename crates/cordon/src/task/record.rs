//! Turns an agent's output into events, a record on disk and a result.

use std::collections::VecDeque;

use cordon_agents::{
    Budget, EndedBy, Ending, EventStream, Exceeded, Outcome, Output, Spending, StreamEvent,
    Transcript, classify,
};
use cordon_session::{Recording, ReplyUpdate};

use crate::{CommandResult, ExecutionResult, Notice, SandboxError, Stream, TaskSpec};

/// Follows one execution.
pub(super) struct Recorder {
    stream: EventStream,
    transcript: Transcript,
    spending: Spending,
    budget: Budget,
    exceeded: Option<Exceeded>,
    recording: Recording,
    /// Why an event could not be written; the run goes on without.
    unwritten: Option<cordon_session::Error>,
    events: VecDeque<StreamEvent>,
}

impl Recorder {
    pub(super) fn new(spec: &TaskSpec, recording: Recording) -> Self {
        Self {
            stream: EventStream::new(spec.agent),
            transcript: Transcript::new(spec.agent),
            spending: Spending::default(),
            budget: spec.budget,
            exceeded: None,
            recording,
            unwritten: None,
            events: VecDeque::new(),
        }
    }

    /// Takes a piece of output; tells if the execution has used up its budget with it.
    pub(super) fn push(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        on_event: &mut impl FnMut(&StreamEvent),
    ) -> Option<Exceeded> {
        match stream {
            Stream::Stdout => {
                let outputs = self.stream.push(bytes);
                self.take(outputs, on_event)
            }
            // The end of it is kept with the run.
            Stream::Stderr => None,
        }
    }

    fn take(
        &mut self,
        outputs: Vec<Output>,
        on_event: &mut impl FnMut(&StreamEvent),
    ) -> Option<Exceeded> {
        for output in outputs {
            self.transcript.push(&output);
            let Output::Event(event) = output else {
                continue;
            };
            on_event(&event);
            self.spending.push(&event);
            if self.unwritten.is_none() {
                self.unwritten = self.recording.append(&event).err();
            }
            if self.events.len() == EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(*event);
        }
        if self.exceeded.is_none() {
            self.exceeded = self.budget.check(&self.spending);
            return self.exceeded;
        }
        None
    }

    /// Closes the record, and says how the execution ended.
    pub(super) fn finish(
        mut self,
        ended: Result<CommandResult, SandboxError>,
        on_event: &mut impl FnMut(&StreamEvent),
    ) -> Result<(ExecutionResult, Vec<Notice>), SandboxError> {
        let last = self.stream.finish();
        self.take(last, on_event);
        let update = ReplyUpdate::of(&self.transcript);
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                // What came before the infrastructure failed is worth keeping; the failure is what
                // the caller hears of.
                drop(self.recording.finish(ReplyUpdate {
                    is_error: true,
                    ..update
                }));
                return Err(error);
            }
        };
        let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
        let outcome = classify(
            &Ending {
                by: ended_by(&ended, self.exceeded),
                exit_code: Some(ended.exit_code),
                oom_killed: ended.out_of_memory,
                stderr: &stderr,
            },
            &self.transcript,
        );
        let success = outcome == Outcome::Success;
        let response_text = if success {
            self.transcript.response_text()
        } else {
            String::new()
        };
        let milliseconds = u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX);
        let update = ReplyUpdate {
            duration_ms: if update.duration_ms == 0 {
                milliseconds
            } else {
                update.duration_ms
            },
            is_error: !success,
            response_text: success.then(|| response_text.clone()),
            outcome: Some(outcome.name().to_owned()),
            ..update
        };
        let result = ExecutionResult {
            outcome,
            session_id: update.session_id.clone(),
            response_text,
            error_summary: if success {
                None
            } else {
                self.transcript.error_summary()
            },
            events: self.events.into(),
            duration: ended.duration,
            total_cost_usd: update.total_cost_usd,
            num_turns: update.num_turns,
            usage: update.usage.clone(),
            stdout: String::from_utf8_lossy(&ended.stdout).into_owned(),
            stderr,
            exit_code: ended.exit_code,
            network: ended.network,
        };
        let closed = self.recording.finish(update).err();
        let notices = self
            .unwritten
            .into_iter()
            .chain(closed)
            .map(|error| Notice::Session {
                what: format!("the run is not wholly on record: {error}"),
            });
        Ok((result, notices.collect()))
    }
}

fn ended_by(ended: &CommandResult, exceeded: Option<Exceeded>) -> EndedBy {
    match (exceeded, ended.timed_out, ended.stopped) {
        (Some(_), _, true) => EndedBy::Budget,
        (_, true, _) => EndedBy::Timeout,
        (_, _, true) => EndedBy::Stop,
        (_, false, false) => EndedBy::Itself,
    }
}

/// How many events a result holds; the journal has all of them.
const EVENTS: usize = 1_000;
