//! Text to tokens. Every byte string of UTF-8 gives tokens; what cannot be read becomes a
//! [`Kind::Bad`] token and a diagnostic, and reading goes on after it.
//!
//! Addresses, networks, times and durations are single tokens, recognized by their shape, the
//! longest first; so `10.0.0.0/8` is never a division and `::1` never two colons.

mod address;
mod literal;
mod number;
mod text;

use literal::{LiteralRead, word};

use crate::diagnostic::{Code, Diagnostic, Span};
use weir_plan::Value;

/// A token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// Whether it is the first token of its line.
    pub(crate) first: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Kind {
    /// A name, with its dots: `tcp.dport`, `where`, `_`.
    Name,
    Literal(Value),
    /// An operator or bracket, as written.
    Sign(&'static str),
    /// A token that could not be read; already reported.
    Bad,
    /// The end of the text.
    End,
}

/// A comment, from its `#` to the end of the line.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    pub(crate) span: Span,
    /// Whether nothing but blanks stands before it on its line.
    pub(crate) own_line: bool,
}

pub(crate) struct Lexed {
    /// The last one is [`Kind::End`].
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Operators and brackets, longer ones before their beginnings.
const SIGNS: &[&str] = &[
    "==", "=>", "=~", "!=", "<=", ">=", "<<", ">>", "<>", "->", "..", "&&", "||", "|", ",", ":",
    ";", "=", "<", ">", "+", "-", "*", "/", "%", "&", "^", "~", "!", "(", ")", "{", "}", "[", "]",
    ".", "@", "?", "$",
];

/// Splits `text` into tokens and comments.
pub(crate) fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer {
        text,
        at: 0,
        fresh_line: true,
        out: Lexed { tokens: Vec::new(), comments: Vec::new(), diagnostics: Vec::new() },
    };
    while lexer.at < text.len() {
        lexer.step();
    }
    lexer.push(Kind::End, 0);
    lexer.out
}

/// Reads one literal and nothing else, such as the value of a parameter on the command line.
pub(crate) fn literal(text: &str) -> Option<Value> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let lexed = lex(digits);
    let [Token { kind: Kind::Literal(value), .. }, _] = &lexed.tokens[..] else { return None };
    let clean = lexed.diagnostics.is_empty() && lexed.comments.is_empty();
    match value {
        _ if !clean => None,
        v if !negative => Some(v.clone()),
        Value::Int(n) => Some(Value::Int(-n)),
        Value::Float(x) => Some(Value::Float(-x)),
        Value::Duration(ns) => Some(Value::Duration(-ns)),
        _ => None,
    }
}

/// The mistake in a text that would be one literal otherwise.
pub(crate) fn fault(text: &str) -> Option<Diagnostic> {
    let lexed = lex(text.strip_prefix('-').unwrap_or(text));
    let [Token { kind: Kind::Bad, .. }, _] = &lexed.tokens[..] else { return None };
    lexed.diagnostics.into_iter().next()
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    fresh_line: bool,
    out: Lexed,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn step(&mut self) {
        let rest = self.rest();
        let c = rest.chars().next().expect("text is left");
        match c {
            '\n' | '\r' => {
                self.fresh_line = true;
                self.at += 1;
            }
            c if c.is_whitespace() || c == '\u{feff}' => self.at += c.len_utf8(),
            '#' => self.comment(),
            '"' => self.literal(text::string(rest)),
            'b' if rest[1..].starts_with('"') => self.literal(text::bytes(rest)),
            '@' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                self.literal(text::time(rest));
            }
            c if c.is_ascii_digit() && text::is_bare_time(rest) => {
                self.literal(text::bare_time(rest));
            }
            _ => match address::read(rest) {
                Some(read) => self.literal(read),
                None if c.is_ascii_digit() => self.literal(number::read(rest)),
                None if c.is_alphabetic() || c == '_' => self.name(),
                None => self.sign(),
            },
        }
    }

    fn push(&mut self, kind: Kind, len: usize) {
        let span = Span::new(self.at, self.at + len);
        self.out.tokens.push(Token { kind, span, first: self.fresh_line });
        self.fresh_line = false;
        self.at += len;
    }

    fn report(&mut self, mut d: Diagnostic) {
        d.span = Span::new(d.span.start + self.at, d.span.end + self.at);
        self.out.diagnostics.push(d);
    }

    fn comment(&mut self) {
        let line = line(self.rest());
        let span = Span::new(self.at, self.at + line.trim_end().len());
        self.out.comments.push(Comment { span, own_line: self.fresh_line });
        self.at += line.len();
    }

    fn literal(&mut self, (len, value): LiteralRead) {
        let len = len.max(1);
        match value {
            Ok(value) => self.push(Kind::Literal(value), len),
            Err(d) => {
                self.report(d);
                self.push(Kind::Bad, len);
            }
        }
    }

    fn name(&mut self) {
        let rest = self.rest();
        let mut len = word(rest);
        while rest[len..].starts_with('.')
            && rest[len + 1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        {
            len += 1 + word(&rest[len + 1..]);
        }
        let whole = letters(rest);
        if whole > len || len == 0 {
            let message = format!("`{}` is not a name", &rest[..whole]);
            let d = Diagnostic::new(Code::StrayCharacter, Span::new(0, whole), message);
            self.report(d.help("names are made of ASCII letters, digits, `_` and `.`"));
            // Taken for the name it was to be, so that nothing else is said of it.
            return self.push(Kind::Name, whole);
        }
        let kind = match &rest[..len] {
            "true" => Kind::Literal(Value::Bool(true)),
            "false" => Kind::Literal(Value::Bool(false)),
            _ => Kind::Name,
        };
        self.push(kind, len);
    }

    fn sign(&mut self) {
        let rest = self.rest();
        if rest.starts_with("//") {
            let line = line(rest).trim_end().len();
            self.report(
                Diagnostic::new(
                    Code::ForeignWord,
                    Span::new(0, 2),
                    "`//` does not start a comment",
                )
                .help("comments start with `#`"),
            );
            self.at += line;
            return;
        }
        let known = SIGNS.iter().find(|s| rest.starts_with(**s));
        if let Some(sign) = known.filter(|s| !matches!(**s, "." | "@" | "?" | "$")) {
            return self.push(Kind::Sign(sign), sign.len());
        }
        let len = stray(rest);
        self.report(stray_character(&rest[..len]));
        self.push(Kind::Bad, len);
    }
}

/// The rest of the line that `text` starts with: line feeds end lines, and so do carriage returns,
/// alone or before them.
fn line(text: &str) -> &str {
    text.split(['\n', '\r']).next().unwrap_or("")
}

/// How many bytes of `rest` belong to no token.
fn stray(rest: &str) -> usize {
    let mut chars = rest.chars();
    let first = chars.next().unwrap_or(' ');
    if first == '$' {
        return 1 + word(&rest[1..]);
    }
    // A whole string in other quotes is one mistake.
    if let Some(closing) =
        QUOTES.iter().find_map(|(open, close)| (*open == first).then_some(*close))
    {
        let line = line(chars.as_str());
        if let Some(n) = line.find(closing) {
            return first.len_utf8() + n + closing.len_utf8();
        }
    }
    let foreign = |c: char| !c.is_ascii() && !c.is_whitespace();
    match rest.find(|c| !foreign(c)) {
        Some(0) => 1,
        Some(n) => n,
        None => rest.len(),
    }
}

/// Quotes that are not ours, opening and closing.
const QUOTES: &[(char, char)] =
    &[('“', '”'), ('„', '“'), ('”', '”'), ('‘', '’'), ('«', '»'), ('\'', '\''), ('`', '`')];

fn stray_character(text: &str) -> Diagnostic {
    let d = Diagnostic::new(
        Code::StrayCharacter,
        Span::new(0, text.len()),
        format!("`{}` means nothing in a query", text.escape_debug()),
    );
    match text.chars().next() {
        Some(c) if c == '’' || QUOTES.iter().any(|(open, _)| *open == c) => {
            d.help(without_quotes(text))
        }
        Some('.') => {
            d.help("a fraction starts with a digit (`0.5`), a range has two dots (`1..9`)")
        }
        Some('@') => d.help("a time is written `@2023-11-14T22:13:20Z`, or `@2023-11-14`"),
        Some('?') => d.help("a choice is written `if(condition, then, else)`"),
        Some('$') => d.help("params are used by their bare name"),
        Some('–' | '—' | '−') => d.help("minus is the plain `-`"),
        Some('≤') => d.help("write `<=`"),
        Some('≥') => d.help("write `>=`"),
        Some('≠') => d.help("write `!=`"),
        _ => d,
    }
}

/// The advice for a value in quotes that are not ours.
fn without_quotes(text: &str) -> String {
    let inner = text.trim_matches(|c| QUOTES.iter().any(|(a, b)| *a == c || *b == c));
    match literal(inner) {
        Some(Value::Ip(_) | Value::Net(..) | Value::Mac(_)) => {
            format!("addresses stand without quotes: `{inner}`")
        }
        _ if inner.is_empty() || inner.chars().any(|c| matches!(c, '"' | '\\')) => {
            "strings stand in plain double quotes: `\"text\"`".to_owned()
        }
        _ => format!("strings stand in plain double quotes: `\"{inner}\"`"),
    }
}

/// The length of the name that `text` starts with, its dots included, if letters of any alphabet
/// were good for names.
fn letters(text: &str) -> usize {
    let letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\u{300}'..='\u{36f}');
    let part = |text: &str| text.find(|c| !letter(c)).unwrap_or(text.len());
    let mut len = part(text);
    while text[len..].starts_with('.')
        && text[len + 1..].starts_with(|c: char| c.is_alphabetic() || c == '_')
    {
        len += 1 + part(&text[len + 1..]);
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        let lexed = lex(text);
        assert!(lexed.diagnostics.is_empty(), "{text}: {:?}", lexed.diagnostics);
        let mut out = Vec::new();
        for t in &lexed.tokens {
            out.push(match &t.kind {
                Kind::Name => format!("name:{}", t.span.of(text)),
                Kind::Literal(v) => format!("{}:{v}", v.ty().expect("a value")),
                Kind::Sign(s) => (*s).to_owned(),
                Kind::Bad => "bad".to_owned(),
                Kind::End => continue,
            });
        }
        out.join(" ")
    }

    #[test]
    fn tokens() {
        let check = |text: &str, expected: &str| assert_eq!(shown(text), expected, "{text}");
        check("| where tcp.dport==80", "| name:where name:tcp.dport == int:80");
        check("a<b<=c<<d", "name:a < name:b <= name:c << name:d");
        check("1..1023", "int:1 .. int:1023");
        check("x in 10.0.0.0/8", "name:x name:in net:10.0.0.0/8");
        check("10.0.0.1..10.0.0.9", "ip:10.0.0.1 .. ip:10.0.0.9");
        check("param add: int", "name:param name:add : name:int");
        check("param a:ip=::1", "name:param name:a : name:ip = ip:::1");
        check("{::1, fe80::2}", "{ ip:::1 , ip:fe80::2 }");
        check("face::b00c face dead.beef", "ip:face::b00c name:face name:dead.beef");
        check("02:00:5e:10:00:01 x", "mac:02:00:5e:10:00:01 name:x");
        check("2001:db8::/32", "net:2001:db8::/32");
        check("1.5h 250ms 2d", "duration:90m duration:250ms duration:2d");
        check("1/2 10/x", "int:1 / int:2 int:10 / name:x");
        check("@2023-11-14..@2023-11-15", "time:2023-11-14T00:00:00Z .. time:2023-11-15T00:00:00Z");
        check("b\"\\x00\" b \"x\"", "bytes:0x00 name:b string:\"x\"");
        check("true false truer", "bool:true bool:false name:truer");
        check("(0, _) => 1", "( int:0 , name:_ ) => int:1");
    }

    #[test]
    fn comments_are_kept_apart() {
        let lexed = lex("# one\npackets # two \r\n\"# no\"");
        let text: Vec<_> = lexed.comments.iter().map(|c| (c.span, c.own_line)).collect();
        assert_eq!(text, [(Span::new(0, 5), true), (Span::new(14, 19), false)]);
        let first: Vec<_> = lexed.tokens.iter().map(|t| t.first).collect();
        assert_eq!(first, [true, true, false]);
    }

    #[test]
    fn a_carriage_return_ends_a_comment_and_a_line() {
        let text = "# one\rpackets # two\r| where tcp // three\r| limit 1";
        let lexed = lex(text);
        let comments: Vec<_> = lexed.comments.iter().map(|c| c.span.of(text)).collect();
        assert_eq!(comments, ["# one", "# two"]);
        let first: Vec<_> = lexed.tokens.iter().filter(|t| t.first).collect();
        let first: Vec<_> = first.iter().map(|t| t.span.of(text)).collect();
        assert_eq!(first, ["packets", "|", "|"]);
    }

    #[test]
    fn letters_of_other_alphabets_stay_in_one_word() {
        let check = |text: &str, name: &str| {
            let lexed = lex(text);
            let spans: Vec<_> = lexed.diagnostics.iter().map(|d| d.span.of(text)).collect();
            assert_eq!((spans, lexed.tokens[0].span.of(text)), (vec![name], name), "{text}");
        };
        check("naïve = 1", "naïve");
        check("ünder.wörld == 2", "ünder.wörld");
        check("nai\u{308}ve", "nai\u{308}ve");
        check("x² + 1", "x²");
        check("端口", "端口");
    }

    #[test]
    fn values_of_parameters() {
        assert_eq!(literal("-5"), Some(Value::Int(-5)));
        assert_eq!(literal("10s"), Some(Value::Duration(10_000_000_000)));
        for bad in ["", "-", "x", "1 2", "1 #", "-10.0.0.1", "1x"] {
            assert_eq!(literal(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn tokens_cover_the_text_in_order(text in "\\PC{0,40}|[0-9a-f:./@\"b#\n =|]{0,40}") {
            let lexed = lex(&text);
            let mut at = 0;
            for t in &lexed.tokens {
                prop_assert!(t.span.start >= at && t.span.end <= text.len());
                prop_assert!(t.kind == Kind::End || t.span.end > t.span.start);
                prop_assert!(text.is_char_boundary(t.span.end));
                at = t.span.end;
            }
            prop_assert_eq!(&lexed.tokens.last().unwrap().kind, &Kind::End);
        }
    }
}
