//! Payloads of questions to the user.

use crate::sanitize::Clean;
use serde::Serialize;

/// Questions to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Question<T = Clean> {
    /// The request to answer; none where nobody can answer any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<T>,
    /// The call that asks.
    pub tool_call_id: T,
    /// What is asked.
    pub questions: Vec<QuestionPart<T>>,
}

/// One question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct QuestionPart<T = Clean> {
    /// Its words.
    pub question: T,
    /// A word for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<T>,
    /// The answers on offer.
    pub options: Vec<QuestionOption<T>>,
    /// Whether several may be chosen.
    pub multi_select: bool,
    /// The field of a form that the answer fills in: answers are given by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<T>,
    /// What an answer has to be: `number`, `integer`, `date`, `email` …; `url` is an address to visit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<T>,
    /// What is suggested as the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<T>,
    /// Whether it may be left without an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// One answer on offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct QuestionOption<T = Clean> {
    /// Its words.
    pub label: T,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<T>,
}

/// What the user answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswer<T = Clean> {
    /// The call that asked.
    pub tool_call_id: T,
    /// The answers.
    pub answers: Vec<GivenAnswer<T>>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct GivenAnswer<T = Clean> {
    /// The question's words.
    pub question: T,
    /// What was chosen or typed.
    pub answer: T,
}
