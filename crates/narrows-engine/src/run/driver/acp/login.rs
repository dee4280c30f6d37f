//! Login methods of ACP agents: what a person has to do for each, and which need no person.

use serde_json::Value;
use std::collections::BTreeSet;

/// Login methods of one agent that are read.
const MAX_LOGIN_METHODS: usize = 16;
/// Variables with providers' API keys whose names do not follow from the provider.
const PROVIDER_KEYS: [(&str, &[&str]); 3] = [
    ("google", &["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
    ("openai", &["OPENAI_API_KEY", "CODEX_API_KEY"]),
    ("anthropic", &["ANTHROPIC_API_KEY"]),
];
/// Words in error messages that indicate a missing login.
const LOGIN_ERROR_WORDS: [&str; 8] = [
    "authenticat",
    "unauthorized",
    "not logged in",
    "log in",
    "login",
    "sign in",
    "api key",
    "credential",
];

/// ACP's error code for "authentication required".
pub(super) const AUTH_REQUIRED: i64 = -32000;

/// The login methods that an agent offers.
#[derive(Debug, Default)]
pub(super) struct LoginMethods {
    methods: Vec<LoginMethod>,
}

#[derive(Debug, PartialEq, Eq)]
struct LoginMethod {
    id: String,
    name: String,
    /// What a person has to do.
    instructions: String,
    /// It needs no person: the variables that it needs are set.
    is_automatic: bool,
    tried: bool,
}

impl LoginMethods {
    /// Reads the methods of an agent that was started with this command line and these variables.
    pub(super) fn read(
        methods: &Value,
        argv: &[String],
        variables: &BTreeSet<String>,
    ) -> LoginMethods {
        let methods = methods.as_array().into_iter().flatten().take(MAX_LOGIN_METHODS);
        let method = |method: &Value| {
            let id = method["id"].as_str().or(method["methodId"].as_str())?;
            let name = method["name"].as_str().unwrap_or(id);
            let about = method["description"].as_str().map(str::trim).unwrap_or_default();
            let command = command(method, argv);
            let (needed, all) = needed(method, id);
            let has = |name: &String| variables.contains(name);
            let is_automatic = command.is_none()
                && !needed.is_empty()
                && if all { needed.iter().all(has) } else { needed.iter().any(has) };
            let instructions = match command {
                Some(command) => format!("run `{command}`"),
                None if !needed.is_empty() => {
                    format!("set {}", needed.join(if all { " and " } else { " or " }))
                }
                None => about.to_owned(),
            };
            Some(LoginMethod {
                id: id.to_owned(),
                name: name.to_owned(),
                instructions,
                is_automatic,
                tried: false,
            })
        };
        LoginMethods { methods: methods.filter_map(method).collect() }
    }

    /// The next automatic method that was not tried yet.
    pub(super) fn next_automatic(&mut self) -> Option<String> {
        let method = self.methods.iter_mut().find(|method| method.is_automatic && !method.tried)?;
        method.tried = true;
        Some(method.id.clone())
    }

    /// Instructions, one method per line; `known` is the agent's configured login command.
    pub(super) fn instructions(&self, known: &[String]) -> Option<String> {
        let known = (!known.is_empty()).then(|| shell_words(known));
        let mut lines: Vec<String> = self
            .methods
            .iter()
            .map(|method| {
                let instructions = if method.instructions.is_empty() {
                    "the agent does it itself"
                } else {
                    &method.instructions
                };
                format!("- {}: {instructions}", method.name)
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

/// The command of a method that needs a terminal.
fn command(method: &Value, argv: &[String]) -> Option<String> {
    let texts = |list: &Value| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    if method["type"] == "terminal" {
        let mut words = argv.to_vec();
        words.extend(texts(&method["args"]));
        return Some(shell_words(&words));
    }
    let meta = &method["_meta"]["terminal-auth"];
    let mut words = vec![meta["command"].as_str()?.to_owned()];
    words.extend(texts(&meta["args"]));
    Some(shell_words(&words))
}

/// The variables that a method needs, and whether it needs all of them.
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
        let known = PROVIDER_KEYS.iter().find(|(name, _)| *name == provider);
        let known = known.map(|(_, keys)| keys.iter().map(|key| (*key).to_owned()).collect());
        return (known.unwrap_or_else(|| vec![variable(&format!("{provider}-api-key"))]), false);
    }
    if id.ends_with("-api-key") {
        return (vec![variable(id)], true);
    }
    (Vec::new(), true)
}

/// Converts a name to the form of a variable name.
fn variable(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(letter).collect()
}

/// A command line with shell quoting.
fn shell_words(words: &[String]) -> String {
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

/// Returns whether an error means a missing login; before a session is open the code alone decides.
pub(super) fn is_login_error(error: &Value, early: bool) -> bool {
    let words = error["message"].as_str().unwrap_or_default().to_lowercase();
    let telling = LOGIN_ERROR_WORDS.iter().any(|word| words.contains(word));
    match error["code"].as_i64() {
        Some(AUTH_REQUIRED) => early || telling,
        _ => early && telling,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(methods: &Value, variables: &[&str]) -> LoginMethods {
        let argv = ["agent", "--acp"].map(str::to_owned);
        LoginMethods::read(methods, &argv, &variables.iter().map(|&v| v.to_owned()).collect())
    }

    #[test]
    fn login_methods_have_instructions() {
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
        let words = read(&methods, &[]).instructions(&[]).expect("words");
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
        assert_eq!(read(&methods, &[]).instructions(&known).expect("words"), words);
        let other = ["agent", "login"].map(str::to_owned);
        let words = read(&json!(null), &[]).instructions(&other).expect("words");
        assert_eq!(words, "- In a terminal: run `agent login`");
        assert_eq!(read(&json!([]), &[]).instructions(&[]), None);
    }

    #[test]
    fn automatic_logins_are_tried_once() {
        let methods = json!([
            {"id": "oauth", "name": "Browser"},
            {"id": "term", "name": "Terminal", "type": "terminal", "args": ["login"]},
            {"id": "both", "name": "Both", "type": "env_var", "vars": [{"name": "A"}, {"name": "B"}]},
            {"id": "api-key", "name": "Key", "_meta": {"api-key": {"provider": "openai"}}},
        ]);
        let mut logins = read(&methods, &["A", "CODEX_API_KEY"]);
        assert_eq!(logins.next_automatic().as_deref(), Some("api-key"));
        assert_eq!(logins.next_automatic(), None);
        assert_eq!(read(&methods, &["A", "B"]).next_automatic().as_deref(), Some("both"));
        assert_eq!(read(&methods, &["PATH"]).next_automatic(), None);
    }

    #[test]
    fn login_errors_are_recognized() {
        let error = |code: i64, message: &str| json!({"code": code, "message": message});
        assert!(is_login_error(&error(-32000, "whatever"), true));
        assert!(is_login_error(&error(-32603, "Please sign in first"), true));
        assert!(!is_login_error(&error(-32603, "no such folder"), true));
        assert!(is_login_error(&error(-32000, "Authentication required"), false));
        assert!(!is_login_error(&error(-32000, "the model is overloaded"), false));
        assert!(!is_login_error(&error(-32603, "the login page does not build"), false));
    }
}
