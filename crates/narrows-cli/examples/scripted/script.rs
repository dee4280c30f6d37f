//! The commands that a prompt may hold, one a line.

#[derive(Debug, PartialEq)]
pub enum Command {
    Say(String),
    Think(String),
    Chunks(u64),
    /// So many texts that tell the time, so many milliseconds apart.
    Stamps(u64, u64),
    Edit(String, String),
    Bash(String),
    Ask(String),
    Question(String, Vec<String>),
    /// Asks with a form or an address: the params of the request.
    Elicit(String),
    /// The same, and takes it back as soon as a file is there.
    TakeBack(String, String),
    /// A subagent says something.
    Subagent(String),
    Read(String),
    Write(String, String),
    Terminal(String),
    Todo(Vec<String>),
    Wait(u64),
    Hang,
    /// Says so, then hangs.
    Stall,
    Exit(i32),
    Stderr(String),
    Flood(u64),
    FloodStderr(u64),
    Garbage,
    CloseStdout,
    CloseStdin,
    Fork,
    Daemon,
    Deaf,
    Env,
    Fds,
    Cwd,
    /// The prompts of this session before this one.
    Recall,
    /// The turn ends for this reason.
    Stop(String),
    /// The turn fails with these words.
    Fail(String),
    /// Writes a line as it is.
    Raw(String),
    /// Says the next answer to a request that was written so, by its id.
    Await(String),
    /// Presents a plan, and asks for leave to begin: what the agent calls it, and the plan.
    Plan(String, String),
}

/// What a prompt says. A line that is no command is said back.
pub fn read(prompt: &str) -> Vec<Command> {
    prompt.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

fn line(line: &str) -> Command {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest_owned = || rest.to_owned();
    let two = || {
        let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
        (path.to_owned(), text.to_owned())
    };
    let many = || rest.split('|').map(|part| part.trim().to_owned()).collect::<Vec<_>>();
    let number = || rest.trim().parse().unwrap_or(0);
    match word {
        "say" => Command::Say(rest_owned()),
        "think" => Command::Think(rest_owned()),
        "chunks" => Command::Chunks(number()),
        "stamps" => {
            let (count, apart) = two();
            Command::Stamps(count.parse().unwrap_or(0), apart.trim().parse().unwrap_or(0))
        }
        "edit" => {
            let (path, text) = two();
            Command::Edit(path, text)
        }
        "bash" => Command::Bash(rest_owned()),
        "ask" => Command::Ask(rest_owned()),
        "question" => {
            let mut parts = many();
            let text = parts.remove(0);
            Command::Question(text, parts)
        }
        "elicit" => Command::Elicit(rest_owned()),
        "take-back" => {
            let (file, params) = two();
            Command::TakeBack(file, params)
        }
        "subagent" => Command::Subagent(rest_owned()),
        "read" => Command::Read(rest_owned()),
        "write" => {
            let (path, text) = two();
            Command::Write(path, text)
        }
        "terminal" => Command::Terminal(rest_owned()),
        "todo" => Command::Todo(many()),
        "wait" => Command::Wait(number()),
        "hang" => Command::Hang,
        "stall" => Command::Stall,
        "exit" => Command::Exit(rest.trim().parse().unwrap_or(0)),
        "stderr" => Command::Stderr(rest_owned()),
        "flood" => Command::Flood(number()),
        "flood-stderr" => Command::FloodStderr(number()),
        "garbage" => Command::Garbage,
        "close-stdout" => Command::CloseStdout,
        "close-stdin" => Command::CloseStdin,
        "fork" => Command::Fork,
        "daemon" => Command::Daemon,
        "deaf" => Command::Deaf,
        "env" => Command::Env,
        "fds" => Command::Fds,
        "cwd" => Command::Cwd,
        "recall" => Command::Recall,
        "stop" => Command::Stop(rest_owned()),
        "fail" => Command::Fail(rest_owned()),
        "raw" => Command::Raw(rest_owned()),
        "await" => Command::Await(rest.trim().to_owned()),
        "plan" => {
            let (title, plan) = rest.split_once('|').unwrap_or(("", rest));
            Command::Plan(title.trim().to_owned(), plan.trim().to_owned())
        }
        _ => Command::Say(line.to_owned()),
    }
}
