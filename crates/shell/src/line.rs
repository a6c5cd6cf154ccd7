//! Judges a line of shell, and prints what was understood of it.

pub(crate) mod path;
mod redirect;

use std::{fmt, path::Path, thread};

use rable::{CasePattern, ListOperator, Node, NodeKind, PipeSep, RableError};

use crate::{
    Programs, Reason, Refusal,
    arguments::Place,
    judge_variable, scan,
    word::{Word, is_variable},
};

/// What is to be run in place of a line that was let through: the same commands, written such that every POSIX
/// shell reads them alike.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Script(String);

impl Script {
    /// The text for `/bin/sh -c`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Judges a line.
pub(crate) fn judge(programs: &Programs, line: &str, workspace: &Path) -> Result<Script, Refusal> {
    scan::scan(line)?;
    let judged = || -> Result<Script, Refusal> {
        let script = print(programs, line, workspace)?;
        if script.len() > MAX_SCRIPT {
            return Err(Refusal::new(
                Reason::TooLong,
                "it does not fit in one argument",
                None,
            ));
        }
        // What was printed must mean to the grammar what it read.
        match print(programs, &script, workspace) {
            Ok(again) if again == script => Ok(Script(script)),
            _ => Err(syntax("it reads differently when it is written out", None)),
        }
    };
    let ended = thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK);
        thread
            .spawn_scoped(scope, judged)
            .ok()
            .map(|running| running.join())
    });
    match ended {
        Some(Ok(judged)) => judged,
        Some(Err(_)) | None => Err(syntax("the grammar gave up", None)),
    }
}

fn print(programs: &Programs, line: &str, workspace: &Path) -> Result<String, Refusal> {
    let nodes = rable::parse(line, false).map_err(unreadable)?;
    if nodes.is_empty() {
        return Err(Refusal::new(Reason::Nothing, "", None));
    }
    let mut judge = Judge {
        programs,
        workspace,
        line: line.chars().collect(),
        out: String::new(),
        waiting: Vec::new(),
    };
    for node in &nodes {
        judge.list(node)?;
        judge.newline();
    }
    Ok(judge.out)
}

fn unreadable(error: RableError) -> Refusal {
    match error {
        RableError::Parse { message, pos, .. } | RableError::MatchedPair { message, pos, .. } => {
            syntax(&message, Some(pos))
        }
    }
}

fn syntax(text: &str, at: Option<usize>) -> Refusal {
    Refusal::new(Reason::Syntax, text, at)
}

/// Walks the tree and prints what it lets through.
struct Judge<'a> {
    programs: &'a Programs,
    workspace: &'a Path,
    line: Vec<char>,
    out: String,
    /// Bodies of here-documents, with their ends, that come behind the next end of a line.
    waiting: Vec<String>,
}

impl Judge<'_> {
    fn list(&mut self, node: &Node) -> Result<(), Refusal> {
        let NodeKind::List { items } = &node.kind else {
            return self.command(node);
        };
        for item in items {
            self.list(&item.command)?;
            match item.operator {
                Some(ListOperator::And) => self.put(" && "),
                Some(ListOperator::Or) => self.put(" || "),
                Some(ListOperator::Semi) => self.newline(),
                Some(ListOperator::Background) => {
                    self.put(" &");
                    self.newline();
                }
                None => {}
            }
        }
        Ok(())
    }

    fn command(&mut self, node: &Node) -> Result<(), Refusal> {
        match &node.kind {
            NodeKind::Command {
                assignments,
                words,
                redirects,
            } => self.simple(assignments, words, redirects),
            NodeKind::Pipeline {
                commands,
                separators,
            } => self.pipeline(node, commands, separators),
            NodeKind::Negation { pipeline } => {
                self.put("! ");
                self.command(pipeline)
            }
            NodeKind::Subshell { body, redirects } => self.enclosed("( ", body, ")", redirects),
            NodeKind::BraceGroup { body, redirects } => self.enclosed("{ ", body, "}", redirects),
            NodeKind::If {
                condition,
                then_body,
                else_body,
                redirects,
            } => {
                self.enclosed("if ", condition, "", &[])?;
                self.enclosed("then ", then_body, "", &[])?;
                if let Some(body) = else_body {
                    self.enclosed("else ", body, "", &[])?;
                }
                self.put("fi");
                self.redirects(redirects)
            }
            NodeKind::While {
                condition,
                body,
                redirects,
            } => self.repeated("while ", condition, body, redirects),
            NodeKind::Until {
                condition,
                body,
                redirects,
            } => self.repeated("until ", condition, body, redirects),
            NodeKind::For {
                var,
                words: Some(words),
                body,
                redirects,
            } => self.each(node, var, words, body, redirects),
            NodeKind::Case {
                word,
                patterns,
                redirects,
            } => self.case(word, patterns, redirects),
            _ => Err(self.unjudged(node)),
        }
    }

    fn simple(
        &mut self,
        assignments: &[Node],
        words: &[Node],
        redirects: &[Node],
    ) -> Result<(), Refusal> {
        for assignment in assignments {
            self.assignment(assignment)?;
            self.put(" ");
        }
        let words = words.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        if let Some((program, arguments)) = words.split_first() {
            let place = Place::Shell {
                workspace: self.workspace,
            };
            self.programs.judge_command(program, arguments, place)?;
            self.words(&words);
        }
        self.redirects(redirects)
    }

    fn assignment(&mut self, node: &Node) -> Result<(), Refusal> {
        let at = position(node);
        let raw = raw(node)?;
        let refuse = |reason| Refusal::new(reason, raw, at);
        let (name, value) = raw.split_once('=').ok_or_else(|| refuse(Reason::Syntax))?;
        if !is_variable(name) {
            return Err(refuse(Reason::Differs));
        }
        judge_variable(name).map_err(|refusal| Refusal { at, ..refusal })?;
        if value.contains(":~") {
            return Err(refuse(Reason::Home));
        }
        self.put(&format!("{name}="));
        if !value.is_empty() {
            Word::read(value, at)?.print(&mut self.out);
        }
        Ok(())
    }

    fn pipeline(
        &mut self,
        node: &Node,
        commands: &[Node],
        separators: &[PipeSep],
    ) -> Result<(), Refusal> {
        if separators.contains(&PipeSep::PipeBoth) {
            return Err(Refusal::new(Reason::Differs, "|&", position(node)));
        }
        for (index, command) in commands.iter().enumerate() {
            if index > 0 {
                self.put(" | ");
            }
            self.command(command)?;
        }
        Ok(())
    }

    fn repeated(
        &mut self,
        word: &str,
        condition: &Node,
        body: &Node,
        redirects: &[Node],
    ) -> Result<(), Refusal> {
        self.enclosed(word, condition, "", &[])?;
        self.enclosed("do ", body, "done", redirects)
    }

    fn each(
        &mut self,
        node: &Node,
        variable: &str,
        words: &[Node],
        body: &Node,
        redirects: &[Node],
    ) -> Result<(), Refusal> {
        let at = position(node);
        if !is_variable(variable) {
            return Err(Refusal::new(Reason::Syntax, variable, at));
        }
        judge_variable(variable).map_err(|refusal| Refusal { at, ..refusal })?;
        let words = words.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        self.put(&format!("for {variable} in "));
        self.words(&words);
        self.newline();
        self.enclosed("do ", body, "done", redirects)
    }

    fn case(
        &mut self,
        word: &Node,
        cases: &[CasePattern],
        redirects: &[Node],
    ) -> Result<(), Refusal> {
        self.put("case ");
        read(word)?.print(&mut self.out);
        self.put(" in");
        self.newline();
        for case in cases {
            if case.terminator != ";;" && !case.terminator.is_empty() {
                return Err(Refusal::new(
                    Reason::Differs,
                    &case.terminator,
                    position(word),
                ));
            }
            for (index, pattern) in case.patterns.iter().enumerate() {
                if index > 0 {
                    self.put("|");
                }
                read(pattern)?.print(&mut self.out);
            }
            self.put(") ");
            if let Some(body) = &case.body {
                self.list(body)?;
            }
            self.newline();
            self.put(";;");
            self.newline();
        }
        self.put("esac");
        self.redirects(redirects)
    }

    /// A list between two words.
    fn enclosed(
        &mut self,
        open: &str,
        body: &Node,
        close: &str,
        redirects: &[Node],
    ) -> Result<(), Refusal> {
        self.put(open);
        self.list(body)?;
        self.newline();
        self.put(close);
        self.redirects(redirects)
    }

    fn words(&mut self, words: &[Word]) {
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                self.put(" ");
            }
            word.print(&mut self.out);
        }
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Ends a line, behind which come the here-documents of that line.
    fn newline(&mut self) {
        if !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        for body in std::mem::take(&mut self.waiting) {
            self.out.push_str(&body);
        }
    }

    fn unjudged(&self, node: &Node) -> Refusal {
        let reason = match &node.kind {
            NodeKind::Function { .. } => Reason::Function,
            NodeKind::ArithmeticCommand { .. } | NodeKind::ForArith { .. } => Reason::Arithmetic,
            NodeKind::Select { .. }
            | NodeKind::Coproc { .. }
            | NodeKind::ConditionalExpr { .. } => Reason::Differs,
            NodeKind::Time { .. } => Reason::RunsCode,
            _ => Reason::Syntax,
        };
        let text = match &node.kind {
            NodeKind::Function { name, .. } => name.clone(),
            NodeKind::Time { .. } => "time".into(),
            NodeKind::Empty => "a command is missing".into(),
            _ => self
                .source(node)
                .iter()
                .take_while(|c| **c != '\n')
                .collect(),
        };
        Refusal::new(reason, text, position(node))
    }

    /// How a node is written in the line.
    fn source(&self, node: &Node) -> &[char] {
        self.line
            .get(node.span.start..node.span.end)
            .unwrap_or_default()
    }
}

fn read(node: &Node) -> Result<Word, Refusal> {
    Word::read(raw(node)?, position(node))
}

fn raw(node: &Node) -> Result<&str, Refusal> {
    match &node.kind {
        NodeKind::Word { value, .. } => Ok(value),
        _ => Err(syntax("a word is missing", position(node))),
    }
}

/// Where a node begins, if the grammar knows.
fn position(node: &Node) -> Option<usize> {
    (!node.span.is_empty()).then_some(node.span.start)
}

/// The kernel takes no longer argument, its end included.
const MAX_SCRIPT: usize = 128 * 1024 - 1;

/// The grammar follows up to a thousand levels, which need some ten mebibytes without optimisation. Only what is
/// used of this becomes memory.
const STACK: usize = 64 << 20;
