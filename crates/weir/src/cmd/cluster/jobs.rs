//! Jobs on a cluster of Flink: to start them, to ask for them, to end them.

use super::client;
use super::progress::JobProgress;
use super::rest::Rest;
use crate::args::{FlinkArgs, JobArgs, SavepointArgs, SubmitArgs};
use crate::exit::{Status, usage};
use crate::term::Term;
use anyhow::{Context as _, bail};
use serde_json::{Value as Json, json};
use std::io::Write as _;
use std::thread;
use std::time::Duration;

/// How often Flink is asked whether a savepoint is written, or a job has ended, and when again.
const LOOKS: u32 = 1200;
const PAUSE: Duration = Duration::from_millis(100);

/// Uploads the jar and starts a job; prints its number.
pub(super) fn submit(args: &SubmitArgs, job: &str) -> anyhow::Result<Status> {
    let jar = std::fs::read(&args.jar).with_context(|| args.jar.display().to_string())?;
    let rest = Rest::new(&args.flink)?;
    refuse_in_use(&rest, args)?;
    let (probes, checkpoint) = (args.probes.join(","), args.checkpoint_ms.to_string());
    let is = |set: bool| if set { "true" } else { "false" };
    let mut given: Vec<(&str, &str)> = vec![
        ("--job", job),
        ("--kafka", &args.kafka),
        ("--topic", &args.topic),
        ("--probes", &probes),
        ("--to", &args.to),
        ("--name", name(args)),
        ("--checkpoint-ms", &checkpoint),
        ("--bounded", is(args.bounded)),
        // A job that goes on from a savepoint goes on with its rows.
        ("--append", is(args.append || args.from_savepoint.is_some())),
        ("--create-topics", is(args.create_topics)),
    ];
    let client = client::in_java(args.kafka_config.as_deref())?;
    given.extend(client.as_deref().map(|client| ("--kafka-properties", client)));
    given.extend(args.database.as_deref().map(|url| ("--database", url)));
    let words: Vec<&str> = given.iter().flat_map(|(option, value)| [*option, *value]).collect();
    let id = rest.upload("weir-flink.jar", &jar)?;
    let mut request = json!({ "entryClass": "weir.job.Job", "programArgsList": words });
    if let Some(savepoint) = &args.from_savepoint {
        request["savepointPath"] = savepoint.as_str().into();
    }
    if let Some(parallelism) = args.parallelism {
        request["parallelism"] = parallelism.get().into();
    }
    let answer = rest.post(&format!("/jars/{id}/run"), &request)?;
    let number = answer["jobid"].as_str().context("Flink names no job")?;
    say(&format!("{number}\n"))
}

fn name(args: &SubmitArgs) -> &str {
    args.name.as_deref().unwrap_or(&args.to)
}

/// Refuses to put rows where a job that has not ended puts its rows.
fn refuse_in_use(rest: &Rest, args: &SubmitArgs) -> anyhow::Result<()> {
    let jobs = rest.get("/jobs/overview")?;
    for job in jobs["jobs"].as_array().into_iter().flatten().filter(|job| !has_ended(job)) {
        let number = job["jid"].as_str().unwrap_or_default();
        let config = rest.get(&format!("/jobs/{number}/config"))?;
        let told = &config["execution-config"]["user-config"];
        if told["weir.to"] != *args.to || told["weir.database"].as_str() != args.database.as_deref()
        {
            continue;
        }
        let (to, known) = (&args.to, job["name"].as_str().unwrap_or_default());
        if !args.append {
            return Err(usage(format!(
                "--to {to}: job {number} puts its rows there, and each row would come twice: \
                 choose another name, end that job (weir cluster savepoint --cancel), or let both \
                 write (--append)"
            )));
        }
        // Kafka ends the transactions of one name for another that has it.
        if known == name(args) {
            return Err(usage(format!(
                "--to {to} --append: job {number} has the same name, and they would end each \
                 other's transactions: give this one another name (--name)"
            )));
        }
    }
    Ok(())
}

/// Whether a job, as Flink lists it, does nothing any more.
fn has_ended(job: &Json) -> bool {
    ["FINISHED", "CANCELED", "FAILED"].iter().any(|state| job["state"] == *state)
}

/// Prints a line for each job: its number, its state, its name.
pub(super) fn list(args: &FlinkArgs) -> anyhow::Result<Status> {
    let answer = Rest::new(args)?.get("/jobs/overview")?;
    let mut text = String::new();
    for job in answer["jobs"].as_array().into_iter().flatten() {
        let word = |key: &str| job[key].as_str().unwrap_or("?").to_owned();
        text += &format!("{}  {:<9} {}\n", word("jid"), word("state"), word("name"));
    }
    say(&text)
}

/// Prints the state of a job, what went through each of its stages, and how far its probes are.
pub(super) fn status(args: &JobArgs) -> anyhow::Result<Status> {
    let rest = Rest::new(&args.flink)?;
    let job = rest.get(&format!("/jobs/{}", args.job))?;
    let word = |json: &Json| json.as_str().unwrap_or("?").to_owned();
    let mut text = format!("{}: {}\n", word(&job["name"]), word(&job["state"]));
    for stage in job["vertices"].as_array().into_iter().flatten() {
        let count = |key: &str| stage["metrics"][key].as_u64().unwrap_or(0);
        text += &format!(
            "{:<9} in {:>10}  out {:>10}  {}\n",
            word(&stage["status"]),
            count("read-records"),
            count("write-records"),
            word(&stage["name"])
        );
    }
    let stages = job["vertices"].as_array().map_or(&[][..], Vec::as_slice);
    text += &JobProgress::ask(&rest, &args.job, stages)?.text();
    let points = rest.get(&format!("/jobs/{}/checkpoints", args.job))?;
    let count = |key: &str| points["counts"][key].as_u64().unwrap_or(0);
    text += &format!(
        "checkpoints: {} completed, {} failed; restored {} times\n",
        count("completed"),
        count("failed"),
        count("restored")
    );
    let faults = rest.get(&format!("/jobs/{}/exceptions?maxExceptions=1", args.job))?;
    let fault = &faults["exceptionHistory"]["entries"][0]["stacktrace"];
    if let Some(line) = fault.as_str().and_then(|stack| stack.lines().next()) {
        text += &format!("latest failure: {line}\n");
    }
    let missing = missing(&rest.get(&format!("/jobs/{}/accumulators", args.job))?);
    if missing > 0 {
        text += &format!(
            "messages missing: {missing}; nobody knows what their probes saw, and completeness() \
             of these windows is next to 0\n"
        );
    }
    say(&text)?;
    Ok(if missing > 0 { Status::Failed } else { Status::Ok })
}

/// Messages of probes that a job did not get, of its accumulators.
fn missing(accumulators: &Json) -> u64 {
    let all = accumulators["user-task-accumulators"].as_array().into_iter().flatten();
    let mine = all.filter(|one| one["name"] == "weir_missing");
    // Flink writes the number, with or without the name of its type before it.
    mine.filter_map(|one| one["value"].as_str()?.split_whitespace().last()?.parse::<u64>().ok())
        .sum()
}

/// Ends a job. Rows that it has not committed are lost.
pub(super) fn cancel(args: &JobArgs) -> anyhow::Result<Status> {
    let rest = Rest::new(&args.flink)?;
    rest.patch(&format!("/jobs/{}?mode=cancel", args.job))?;
    wait_for_end(&rest, &args.job)?;
    Ok(Status::Ok)
}

/// Waits until a job that is told to end has ended: another one may put rows there then.
fn wait_for_end(rest: &Rest, job: &str) -> anyhow::Result<()> {
    for _ in 0..LOOKS {
        if has_ended(&rest.get(&format!("/jobs/{job}"))?) {
            return Ok(());
        }
        pause();
    }
    bail!("job {job} has not ended after two minutes: it may still end")
}

/// Writes a savepoint, and prints where it is.
pub(super) fn savepoint(args: &SavepointArgs, term: &Term) -> anyhow::Result<Status> {
    let rest = Rest::new(&args.job.flink)?;
    let job = &args.job.job;
    let request = json!({ "cancel-job": args.cancel, "target-directory": args.to });
    let answer = rest.post(&format!("/jobs/{job}/savepoints"), &request)?;
    let request = answer["request-id"].as_str().context("Flink names no savepoint")?.to_owned();
    for _ in 0..LOOKS {
        let state = rest.get(&format!("/jobs/{job}/savepoints/{request}"))?;
        if state["status"]["id"] == "COMPLETED" {
            let operation = &state["operation"];
            if let Some(cause) = operation["failure-cause"]["stack-trace"].as_str() {
                bail!("the savepoint failed: {}", cause.lines().next().unwrap_or_default());
            }
            let place = operation["location"].as_str().unwrap_or_default();
            say(&format!("{place}\n"))?;
            if args.cancel {
                wait_for_end(&rest, job)?;
            }
            return Ok(Status::Ok);
        }
        pause();
    }
    term.error(format_args!("the savepoint is not written after two minutes: it may still come"));
    Ok(Status::Failed)
}

#[expect(clippy::disallowed_methods, reason = "Flink has no way to wait for these")]
fn pause() {
    thread::sleep(PAUSE);
}

fn say(text: &str) -> anyhow::Result<Status> {
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Status::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_messages_are_those_of_all_tasks() {
        let value = |name: &str, value: &str| json!({ "name": name, "type": "x", "value": value });
        let all = [value("weir_missing", "3"), value("other", "5"), value("weir_missing", "L 4")];
        assert_eq!(missing(&json!({ "user-task-accumulators": all })), 7);
        assert_eq!(missing(&json!({})), 0);
    }
}
