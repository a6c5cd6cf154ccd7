//! Redirections of a command.

use rable::{Node, NodeKind};

use crate::{Reason, Refusal, word::quote};

use super::{Judge, path, position, read};

impl Judge<'_> {
    pub(super) fn redirects(&mut self, redirects: &[Node]) -> Result<(), Refusal> {
        for redirect in redirects {
            if !self.out.ends_with([' ', '\n']) {
                self.put(" ");
            }
            match &redirect.kind {
                NodeKind::Redirect {
                    op,
                    target,
                    fd,
                    varfd: None,
                } => self.redirect(redirect, op, target, *fd)?,
                NodeKind::HereDoc {
                    content,
                    quoted,
                    fd,
                    delimiter,
                    ..
                } => {
                    if !quoted && content.contains(['$', '`', '\\']) {
                        return Err(Refusal::new(
                            Reason::HereDocument,
                            delimiter,
                            position(redirect),
                        ));
                    }
                    self.here_document(redirect, content, *fd)?;
                }
                _ => return Err(self.refuse(redirect, Reason::Differs)),
            }
        }
        Ok(())
    }

    fn redirect(
        &mut self,
        node: &Node,
        operator: &str,
        target: &Node,
        descriptor: i32,
    ) -> Result<(), Refusal> {
        let source: String = self.source(node).iter().collect();
        let descriptor = self.descriptor(node, descriptor)?;
        let target = read(target)?;
        let refuse = |reason| Refusal::new(reason, &source, position(node));
        match operator {
            "<" | ">" | ">>" | ">|" | "<>" => {
                let Some(text) = target
                    .text()
                    .filter(|text| path::is_usable(text, self.workspace))
                else {
                    return Err(refuse(Reason::Redirection));
                };
                if operator != "<" && path::is_protected(&text) {
                    return Err(refuse(Reason::Protected));
                }
                self.put(&format!("{descriptor}{operator}"));
                target.print(&mut self.out);
            }
            // The grammar gives the same for `>&-`, `<&-` and `>& -`.
            ">&-" if matches!(source.as_str(), ">&-" | "<&-") => {
                self.put(&format!("{descriptor}{source}"))
            }
            ">&" | "<&" if !source.ends_with('-') => {
                let text = target.text().filter(|text| is_descriptor(text));
                let text = text.ok_or_else(|| refuse(Reason::Differs))?;
                self.put(&format!("{descriptor}{operator}{text}"));
            }
            _ => return Err(refuse(Reason::Differs)),
        }
        Ok(())
    }

    fn here_document(
        &mut self,
        node: &Node,
        content: &str,
        descriptor: i32,
    ) -> Result<(), Refusal> {
        let mut delimiter = String::from("END");
        while content.lines().any(|line| line == delimiter) {
            delimiter.push('_');
        }
        let descriptor = self.descriptor(node, descriptor)?;
        self.put(&format!("{descriptor}<<"));
        quote(&delimiter, &mut self.out);
        let end = if content.is_empty() || content.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        self.waiting.push(format!("{content}{end}{delimiter}\n"));
        Ok(())
    }

    /// The number in front of an operator. More than one digit is a word in some shells.
    fn descriptor(&self, node: &Node, descriptor: i32) -> Result<String, Refusal> {
        match descriptor {
            -1 => Ok(String::new()),
            0..=9 => Ok(descriptor.to_string()),
            _ => Err(self.refuse(node, Reason::Differs)),
        }
    }

    fn refuse(&self, node: &Node, reason: Reason) -> Refusal {
        let text: String = self.source(node).iter().collect();
        Refusal::new(reason, text, position(node))
    }
}

fn is_descriptor(text: &str) -> bool {
    text.len() == 1 && text.chars().all(|c| c.is_ascii_digit())
}
