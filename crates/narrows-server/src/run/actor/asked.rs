//! Answers to what an agent asks, and what is chosen of what it offers.

use super::{Actor, MAX_ANSWERED};
use crate::run::Refusal;
use crate::run::driver::{Chosen, Refused, Reply};

impl Actor {
    pub(super) async fn answer(&mut self, request: &str, reply: &Reply) -> Result<(), Refusal> {
        if self.answered.iter().any(|a| a == request) {
            return Err(Refusal::AlreadyAnswered);
        }
        let Some(process) = &mut self.process else { return Err(Refusal::NotRunning) };
        match process.driver.answer(request, reply) {
            Ok(effects) => {
                self.apply(effects).await;
                Ok(())
            }
            Err(Refused::Unknown) => Err(Refusal::NotAsked),
            Err(Refused::NoSuchOption) => Err(Refusal::NoSuchOption),
            Err(Refused::NoReason) => Err(Refusal::NoReason),
            Err(Refused::Unfit(what)) => Err(Refusal::Unfit(what)),
            Err(Refused::Missing(what)) => Err(Refusal::Missing(what)),
        }
    }

    pub(super) async fn choose(
        &mut self,
        chosen: &Chosen,
        hold: Option<bool>,
    ) -> Result<(), Refusal> {
        match self.process.as_ref().filter(|process| process.ready) {
            Some(process) => process.driver.offers(chosen).map_err(Refusal::NotOffered)?,
            // A mode and a model are kept for the next process; which options there are is not known.
            None if !chosen.options.is_empty() => return Err(Refusal::NotRunning),
            None => {}
        }
        self.held = hold.unwrap_or(self.held);
        self.run.mode = chosen.mode.clone().or(self.run.mode.take());
        self.run.model = chosen.model.clone().or(self.run.model.take());
        self.keep_run().await;
        if let Some(process) = &mut self.process {
            let effects = process.driver.choose(chosen);
            self.apply(effects).await;
        }
        Ok(())
    }

    pub(super) fn remember(&mut self, request: String) {
        if self.answered.len() >= MAX_ANSWERED {
            self.answered.pop_front();
        }
        self.answered.push_back(request);
    }
}
