//! Payloads of questions to the user.

use crate::sanitize::Clean;
use serde::Serialize;

/// Questions to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Question<T = Clean> {
    /// Id of the request to answer; none if it can no longer be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<T>,
    /// The call that asks.
    pub tool_call_id: T,
    /// The questions.
    pub questions: Vec<QuestionPart<T>>,
}

/// One question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct QuestionPart<T = Clean> {
    /// Text of the question.
    pub question: T,
    /// Short heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<T>,
    /// The offered answers.
    pub options: Vec<QuestionOption<T>>,
    /// Whether several answers may be chosen.
    pub multi_select: bool,
    /// Name of the form field that the answer fills; answers refer to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<T>,
    /// Type of the answer: `number`, `integer`, `date`, `email` …; `url` is an address to visit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<T>,
    /// Suggested answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<T>,
    /// Whether the question may stay unanswered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// One offered answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct QuestionOption<T = Clean> {
    /// Label.
    pub label: T,
    /// Explanation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<T>,
}

/// The user's answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswer<T = Clean> {
    /// The call that asked.
    pub tool_call_id: T,
    /// The answers.
    pub answers: Vec<QuestionResponse<T>>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct QuestionResponse<T = Clean> {
    /// Text of the question.
    pub question: T,
    /// The chosen or typed answer.
    pub answer: T,
}
