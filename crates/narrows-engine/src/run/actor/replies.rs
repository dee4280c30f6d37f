//! Answers to an agent's requests, and changes of its settings.

use super::{Actor, MAX_ANSWERED};
use crate::run::RunError;
use crate::run::driver::{PermissionReply, ReplyError, RunSettings};

impl Actor {
    pub(super) async fn submit_reply(
        &mut self,
        request: &str,
        reply: &PermissionReply,
    ) -> Result<(), RunError> {
        if self.answered.iter().any(|a| a == request) {
            return Err(RunError::AlreadyAnswered);
        }
        let Some(process) = &mut self.process else { return Err(RunError::NotRunning) };
        match process.driver.answer(request, reply) {
            Ok(effects) => {
                self.apply(effects).await;
                Ok(())
            }
            Err(ReplyError::Unknown) => Err(RunError::NotAsked),
            Err(ReplyError::NoSuchOption) => Err(RunError::NoSuchOption),
            Err(ReplyError::NoReason) => Err(RunError::NoReason),
            Err(ReplyError::Unfit(what)) => Err(RunError::Unfit(what)),
            Err(ReplyError::Missing(what)) => Err(RunError::Missing(what)),
        }
    }

    pub(super) async fn configure(
        &mut self,
        settings: &RunSettings,
        hold: Option<bool>,
    ) -> Result<(), RunError> {
        match self.process.as_ref().filter(|process| process.ready) {
            Some(process) => {
                process.driver.check_offered(settings).map_err(RunError::NotOffered)?
            }
            // Mode and model are stored for the next process; which options it will offer is unknown.
            None if !settings.options.is_empty() => return Err(RunError::NotRunning),
            None => {}
        }
        self.held = hold.unwrap_or(self.held);
        self.run.mode = settings.mode.clone().or(self.run.mode.take());
        self.run.model = settings.model.clone().or(self.run.model.take());
        self.persist_run().await;
        if let Some(process) = &mut self.process {
            let effects = process.driver.choose(settings);
            self.apply(effects).await;
        }
        Ok(())
    }

    pub(super) fn remember_answered(&mut self, request: String) {
        if self.answered.len() >= MAX_ANSWERED {
            self.answered.pop_front();
        }
        self.answered.push_back(request);
    }
}
