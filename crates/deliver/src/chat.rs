//! Alerts as messages of chats, by the bodies that their incoming webhooks take.

use crate::alert::Alert;
use crate::clean;
use crate::limits::TEXT_MAX;
use crate::target::BodyForm;
use serde_json::{Value, json};
use weir_base::alert::{AlertSeverity, AlertState};

/// The body of a request.
pub(crate) fn body(form: BodyForm, alert: &Alert) -> String {
    match form {
        BodyForm::Json => alert.json.clone(),
        BodyForm::Slack => slack(alert).to_string(),
        BodyForm::Mattermost => mattermost(alert).to_string(),
        BodyForm::Teams => teams(alert).to_string(),
        BodyForm::Discord => discord(alert).to_string(),
    }
}

/// The facts of a message besides its headline: a name and a value each.
fn facts(alert: &Alert) -> Vec<(&'static str, String)> {
    let measured = alert.evidence().into_iter().find(|(name, _)| name == "measured");
    let measured = measured.map(|(_, text)| text).unwrap_or_default();
    let all = [
        ("rule", &alert.rule),
        ("key", &alert.key),
        ("measured", &measured),
        ("first", &alert.first),
        ("last", &alert.last),
    ];
    let some = all.into_iter().filter(|(_, text)| !text.is_empty());
    some.map(|(name, text)| (name, clean::line(text, TEXT_MAX / 2))).collect()
}

/// A color for a severity, as 24 bits; green once the alert has ended.
fn color(alert: &Alert) -> u32 {
    match (alert.state, alert.severity) {
        (AlertState::End, _) => 0x2e_a0_43,
        (_, AlertSeverity::Critical) => 0xb6_04_0b,
        (_, AlertSeverity::High) => 0xd9_3f_0b,
        (_, AlertSeverity::Medium) => 0xfb_ca_04,
        (_, AlertSeverity::Low | AlertSeverity::Info) => 0x1d_76_db,
    }
}

/// Slack: texts of the type `plain_text` have no markup; what could be some is escaped anyway.
fn slack(alert: &Alert) -> Value {
    let text = |text: String| json!({"type": "plain_text", "text": text, "emoji": false});
    let headline = clean::line(&alert.headline(), TEXT_MAX);
    let mut blocks = vec![json!({"type": "section", "text": text(clean::slack(&headline))})];
    let fields: Vec<Value> = facts(alert)
        .into_iter()
        .map(|(name, value)| text(format!("{name}: {}", clean::slack(&value))))
        .collect();
    if !fields.is_empty() {
        blocks.push(json!({"type": "context", "elements": fields}));
    }
    json!({
        "text": clean::slack(&headline),
        "blocks": blocks,
        "link_names": 0,
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

fn mattermost(alert: &Alert) -> Value {
    let headline = clean::markdown(&clean::line(&alert.headline(), TEXT_MAX));
    let field = |(name, value): (&str, String)| {
        let value = clean::markdown(&value);
        json!({"title": name, "value": value, "short": true})
    };
    let fields: Vec<Value> = facts(alert).into_iter().map(field).collect();
    json!({
        "username": "weir",
        "attachments": [{
            "fallback": headline,
            "color": format!("#{:06x}", color(alert)),
            "text": headline,
            "fields": fields,
        }],
    })
}

/// Teams: an adaptive card, whose text runs have no markup.
fn teams(alert: &Alert) -> Value {
    let color = match alert.severity {
        _ if alert.state == AlertState::End => "Good",
        AlertSeverity::Critical | AlertSeverity::High => "Attention",
        AlertSeverity::Medium => "Warning",
        AlertSeverity::Low | AlertSeverity::Info => "Accent",
    };
    let run = |text: &str, weight: &str, color: &str| {
        json!({
            "type": "RichTextBlock",
            "inlines": [{"type": "TextRun", "text": text, "weight": weight, "color": color}],
        })
    };
    let headline = clean::plain(&clean::line(&alert.headline(), TEXT_MAX));
    let mut body = vec![run(&headline, "Bolder", color)];
    for (name, value) in facts(alert) {
        body.push(run(&format!("{name}: {}", clean::plain(&value)), "Default", "Default"));
    }
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": body,
            },
        }],
    })
}

/// Discord: nobody is mentioned, whatever the text says.
fn discord(alert: &Alert) -> Value {
    let field = |(name, value): (&str, String)| {
        let value = clean::markdown(&value);
        json!({"name": name, "value": value, "inline": true})
    };
    let fields: Vec<Value> = facts(alert).into_iter().map(field).collect();
    json!({
        "username": "weir",
        "allowed_mentions": {"parse": []},
        "embeds": [{
            "description": clean::markdown(&clean::line(&alert.headline(), TEXT_MAX)),
            "color": color(alert),
            "fields": fields,
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::tests::alert;

    #[test]
    fn json_is_the_row() {
        let alert = alert("start", "high", "x");
        assert_eq!(body(BodyForm::Json, &alert), alert.json);
    }

    #[test]
    fn every_chat_gets_its_body() {
        let alert = alert("start", "high", "716 SYNs");
        let parsed = |form| -> Value { serde_json::from_str(&body(form, &alert)).expect("JSON") };
        let slack = parsed(BodyForm::Slack);
        let joint = "syn_\u{200b}flood";
        assert_eq!(slack["text"], format!("HIGH {joint} started:\u{200b} 716 SYNs"));
        assert_eq!(slack["blocks"][0]["text"]["type"], "plain_text");
        let mattermost = parsed(BodyForm::Mattermost);
        assert_eq!(mattermost["attachments"][0]["color"], "#d93f0b");
        assert_eq!(mattermost["attachments"][0]["fields"][0]["title"], "rule");
        let teams = parsed(BodyForm::Teams);
        let content = &teams["attachments"][0]["content"];
        assert_eq!(content["body"][0]["inlines"][0]["color"], "Attention");
        let discord = parsed(BodyForm::Discord);
        assert_eq!(discord["allowed_mentions"]["parse"], json!([]));
        assert_eq!(discord["embeds"][0]["fields"][1]["name"], "key");
    }

    #[test]
    fn strangers_call_nobody_and_place_no_links() {
        let evil = "@everyone <!here> [x](http://evil.example) <@U1> @channel \u{202e}\r\n# head";
        for (_, form) in BodyForm::ALL.into_iter().filter(|(_, form)| *form != BodyForm::Json) {
            let text = body(form, &alert("start", "high", evil));
            for bad in ["@everyone", "@channel", "@U1", "http://evil", "\u{202e}"] {
                assert!(!text.contains(bad), "{text}");
            }
            assert!(form != BodyForm::Slack || !text.contains('<'), "{text}");
            let shown: Value = serde_json::from_str(&text).expect("JSON");
            assert!(!shown.to_string().contains("\\n") && !shown.to_string().contains("\\r"));
        }
    }

    #[test]
    fn bodies_stay_small() {
        for (_, form) in BodyForm::ALL.into_iter().filter(|(_, form)| *form != BodyForm::Json) {
            let mut alert = alert("end", "critical", &"*".repeat(100_000));
            alert.key = "<".repeat(1024);
            assert!(body(form, &alert).len() < 20_000, "{form:?}");
        }
    }
}
