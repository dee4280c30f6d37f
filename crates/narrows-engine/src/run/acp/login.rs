//! Logins of agents: which ways there are, what a person has to do for each, and which need nobody.

use serde_json::Value;
use std::collections::BTreeSet;

/// Ways of one agent that are looked at.
const MAX_WAYS: usize = 16;
/// By which variables agents find the keys of providers, where those are not called like them.
const KEYS: [(&str, &[&str]); 3] = [
    ("google", &["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
    ("openai", &["OPENAI_API_KEY", "CODEX_API_KEY"]),
    ("anthropic", &["ANTHROPIC_API_KEY"]),
];
/// Words of errors that tell of a missing login.
const TELLING: [&str; 8] = [
    "authenticat",
    "unauthorized",
    "not logged in",
    "log in",
    "login",
    "sign in",
    "api key",
    "credential",
];

/// The code of the protocol for "authentication required".
pub(super) const REQUIRED: i64 = -32000;

/// The ways to log in that an agent names.
#[derive(Debug, Default)]
pub(super) struct Logins {
    ways: Vec<Way>,
}

#[derive(Debug, PartialEq, Eq)]
struct Way {
    id: String,
    name: String,
    /// What somebody has to do.
    what: String,
    /// It needs nobody: what it needs is there.
    alone: bool,
    tried: bool,
}

impl Logins {
    /// Reads the methods of an agent that was started by this command line, with these variables.
    pub(super) fn read(methods: &Value, argv: &[String], variables: &BTreeSet<String>) -> Logins {
        let methods = methods.as_array().into_iter().flatten().take(MAX_WAYS);
        let way = |method: &Value| {
            let id = method["id"].as_str().or(method["methodId"].as_str())?;
            let name = method["name"].as_str().unwrap_or(id);
            let about = method["description"].as_str().map(str::trim).unwrap_or_default();
            let command = command(method, argv);
            let (needed, all) = needed(method, id);
            let has = |name: &String| variables.contains(name);
            let alone = command.is_none()
                && !needed.is_empty()
                && if all { needed.iter().all(has) } else { needed.iter().any(has) };
            let what = match command {
                Some(command) => format!("run `{command}`"),
                None if !needed.is_empty() => {
                    format!("set {}", needed.join(if all { " and " } else { " or " }))
                }
                None => about.to_owned(),
            };
            Some(Way { id: id.to_owned(), name: name.to_owned(), what, alone, tried: false })
        };
        Logins { ways: methods.filter_map(way).collect() }
    }

    /// The next way that needs nobody and was not tried yet.
    pub(super) fn next_alone(&mut self) -> Option<String> {
        let way = self.ways.iter_mut().find(|way| way.alone && !way.tried)?;
        way.tried = true;
        Some(way.id.clone())
    }

    /// What somebody can do, a way a line; with the command that is known of this agent.
    pub(super) fn words(&self, known: &[String]) -> Option<String> {
        let known = (!known.is_empty()).then(|| line_of(known));
        let mut lines: Vec<String> = self
            .ways
            .iter()
            .map(|way| {
                let what = if way.what.is_empty() { "the agent does it itself" } else { &way.what };
                format!("- {}: {what}", way.name)
            })
            .collect();
        if let Some(known) = known
            && !lines.iter().any(|line| line.contains(&known))
        {
            lines.push(format!("- In a terminal: run `{known}`"));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// The command of a way that needs a terminal.
fn command(method: &Value, argv: &[String]) -> Option<String> {
    let texts = |list: &Value| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    if method["type"] == "terminal" {
        let mut words = argv.to_vec();
        words.extend(texts(&method["args"]));
        return Some(line_of(&words));
    }
    let told = &method["_meta"]["terminal-auth"];
    let mut words = vec![told["command"].as_str()?.to_owned()];
    words.extend(texts(&told["args"]));
    Some(line_of(&words))
}

/// The variables that a way needs, and whether it needs all of them.
fn needed(method: &Value, id: &str) -> (Vec<String>, bool) {
    let vars = method["vars"].as_array().into_iter().flatten();
    let vars = vars.filter(|var| var["optional"] != true);
    let mut named: Vec<String> =
        vars.filter_map(|var| var["name"].as_str().or(var.as_str()).map(str::to_owned)).collect();
    named.extend(method["varName"].as_str().map(str::to_owned));
    if !named.is_empty() {
        return (named, true);
    }
    if let Some(provider) = method["_meta"]["api-key"]["provider"].as_str() {
        let known = KEYS.iter().find(|(name, _)| *name == provider);
        let known = known.map(|(_, keys)| keys.iter().map(|key| (*key).to_owned()).collect());
        return (known.unwrap_or_else(|| vec![variable(&format!("{provider}-api-key"))]), false);
    }
    if id.ends_with("-api-key") {
        return (vec![variable(id)], true);
    }
    (Vec::new(), true)
}

/// A name as variables are called.
fn variable(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(letter).collect()
}

/// A command line, as one types it.
fn line_of(words: &[String]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Whether an error tells that a login is missing; `code` decides alone before a session is there.
pub(super) fn is_missing(error: &Value, early: bool) -> bool {
    let words = error["message"].as_str().unwrap_or_default().to_lowercase();
    let telling = TELLING.iter().any(|word| words.contains(word));
    match error["code"].as_i64() {
        Some(REQUIRED) => early || telling,
        _ => early && telling,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(methods: &Value, variables: &[&str]) -> Logins {
        let argv = ["agent", "--acp"].map(str::to_owned);
        Logins::read(methods, &argv, &variables.iter().map(|&v| v.to_owned()).collect())
    }

    #[test]
    fn each_way_says_what_to_do() {
        let methods = json!([
            {"id": "sub", "name": "Subscription", "type": "terminal", "args": ["--cli", "auth login"]},
            {"id": "x-login", "name": "Login", "description": "Run it",
             "_meta": {"terminal-auth": {"command": "x", "args": ["auth", "login"]}}},
            {"id": "env", "name": "Keys", "type": "env_var",
             "vars": [{"name": "A_KEY"}, {"name": "B_KEY", "optional": true}]},
            {"id": "api-key", "name": "API Key", "_meta": {"api-key": {"provider": "openai"}}},
            {"id": "gemini-api-key", "name": "Gemini API key"},
            {"id": "oauth", "name": "Google", "description": "Log in with your account"},
            {"id": 7}, "odd",
        ]);
        let words = read(&methods, &[]).words(&[]).expect("words");
        assert_eq!(
            words,
            "- Subscription: run `agent --acp --cli 'auth login'`\n\
             - Login: run `x auth login`\n\
             - Keys: set A_KEY\n\
             - API Key: set OPENAI_API_KEY or CODEX_API_KEY\n\
             - Gemini API key: set GEMINI_API_KEY\n\
             - Google: Log in with your account"
        );
        let known = ["x", "auth", "login"].map(str::to_owned);
        assert_eq!(read(&methods, &[]).words(&known).expect("words"), words);
        let other = ["agent", "login"].map(str::to_owned);
        let words = read(&json!(null), &[]).words(&other).expect("words");
        assert_eq!(words, "- In a terminal: run `agent login`");
        assert_eq!(read(&json!([]), &[]).words(&[]), None);
    }

    #[test]
    fn only_what_needs_nobody_is_tried_and_once() {
        let methods = json!([
            {"id": "oauth", "name": "Browser"},
            {"id": "term", "name": "Terminal", "type": "terminal", "args": ["login"]},
            {"id": "both", "name": "Both", "type": "env_var", "vars": [{"name": "A"}, {"name": "B"}]},
            {"id": "api-key", "name": "Key", "_meta": {"api-key": {"provider": "openai"}}},
        ]);
        let mut logins = read(&methods, &["A", "CODEX_API_KEY"]);
        assert_eq!(logins.next_alone().as_deref(), Some("api-key"));
        assert_eq!(logins.next_alone(), None);
        assert_eq!(read(&methods, &["A", "B"]).next_alone().as_deref(), Some("both"));
        assert_eq!(read(&methods, &["PATH"]).next_alone(), None);
    }

    #[test]
    fn a_missing_login_is_told_from_other_errors() {
        let error = |code: i64, message: &str| json!({"code": code, "message": message});
        assert!(is_missing(&error(-32000, "whatever"), true));
        assert!(is_missing(&error(-32603, "Please sign in first"), true));
        assert!(!is_missing(&error(-32603, "no such folder"), true));
        assert!(is_missing(&error(-32000, "Authentication required"), false));
        assert!(!is_missing(&error(-32000, "the model is overloaded"), false));
        assert!(!is_missing(&error(-32603, "the login page does not build"), false));
    }
}
