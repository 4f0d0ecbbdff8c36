//! The functions that a Java machine calls.
//!
//! Sound, since each is called with the machine's word for its own arguments: their types are those
//! of `weir.engine.Native`. Nothing is kept of them after a call, and no panic leaves one.

#![allow(unsafe_code)]

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass, JObject, JString, JValue};
use jni::sys::{jboolean, jbyteArray, jlong, jlongArray};
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use weir_flink::{Give, RowForm, Tier, TierCounts, TierFault, TierTerms};

thread_local! {
    /// The tiers that this thread has opened, by their handles.
    static TIERS: RefCell<OpenTiers> = RefCell::default();
}

#[derive(Default)]
struct OpenTiers {
    last: i64,
    all: BTreeMap<i64, Tier>,
}

fn tiers<T>(f: impl FnOnce(&mut OpenTiers) -> T) -> T {
    TIERS.with_borrow_mut(f)
}

/// Does something that may panic.
fn guarded<T>(f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let text = |panic: Box<dyn Any + Send>| match panic.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => (*panic.downcast_ref::<&str>().unwrap_or(&"no message")).to_owned(),
    };
    let called = catch_unwind(AssertUnwindSafe(f));
    called.unwrap_or_else(|panic| Err(format!("the engine failed: {}", text(panic))))
}

/// Calls a tier; one that fails is closed.
fn with<T>(handle: i64, f: impl FnOnce(&mut Tier) -> Result<T, TierFault>) -> Result<T, String> {
    let tier = tiers(|tiers| tiers.all.remove(&handle));
    let gone = || format!("there is no merge {handle} of this thread, or it has failed");
    let mut tier = tier.ok_or_else(gone)?;
    guarded(move || {
        let result = f(&mut tier).map_err(|fault| fault.to_string())?;
        tiers(|tiers| tiers.all.insert(handle, tier));
        Ok(result)
    })
}

/// Gives a result to the machine, or throws: what was thrown below goes on.
fn give<T>(env: &mut JNIEnv<'_>, result: Result<T, String>, none: T) -> T {
    result.unwrap_or_else(|why| {
        if !env.exception_check().unwrap_or(true) {
            // Where this fails, another exception is thrown already.
            let _ = env.throw_new("java/lang/IllegalStateException", why);
        }
        none
    })
}

fn text(env: &mut JNIEnv<'_>, text: &JString<'_>) -> Result<String, String> {
    env.get_string(text).map(String::from).map_err(|fault| fault.to_string())
}

fn bytes(env: &mut JNIEnv<'_>, bytes: &JByteArray<'_>) -> Result<Vec<u8>, String> {
    env.convert_byte_array(bytes).map_err(|fault| fault.to_string())
}

fn array(env: &mut JNIEnv<'_>, bytes: &[u8]) -> Result<jbyteArray, String> {
    let array = env.byte_array_from_slice(bytes).map(|array| array.into_raw());
    array.map_err(|fault| fault.to_string())
}

/// Hands lines to an object that has a method `take`.
fn hand(env: &mut JNIEnv<'_>, to: &JObject<'_>, lines: &[u8]) -> jni::errors::Result<()> {
    let array = env.byte_array_from_slice(lines)?;
    let called = env.call_method(to, "take", "([B)V", &[JValue::Object(&array)]).map(|_| ());
    // A call may hand over many.
    env.delete_local_ref(array)?;
    called
}

type Counted = Result<TierCounts, String>;

/// Calls a tier, whose lines go to an object that has a method `take`.
fn turn(
    env: &mut JNIEnv<'_>,
    handle: i64,
    to: &JObject<'_>,
    f: impl FnOnce(&mut Tier, Give<'_>) -> Result<TierCounts, TierFault>,
) -> Counted {
    let mut lines = |lines: &[u8]| hand(env, to, lines).map_err(io::Error::other);
    with(handle, |tier| f(tier, &mut lines))
}

/// Counts as an array: repeated, missing, refused, late.
fn counts(env: &mut JNIEnv<'_>, counted: Counted) -> jlongArray {
    let array = counted.and_then(|TierCounts { repeated, missing, refused, late }| {
        let all = [repeated, missing, refused, late].map(|n| n as i64);
        let array = env.new_long_array(4).and_then(|array| {
            env.set_long_array_region(&array, 0, &all)?;
            Ok(array.into_raw())
        });
        array.map_err(|fault| fault.to_string())
    });
    give(env, array, std::ptr::null_mut())
}

fn open(
    env: &mut JNIEnv<'_>,
    [job, probes]: [&JString<'_>; 2],
    [is_bounded, copies]: [jboolean; 2],
    state: &JByteArray<'_>,
) -> Result<i64, String> {
    let (job, probes) = (text(env, job)?, text(env, probes)?);
    let state = (!state.is_null()).then(|| bytes(env, state)).transpose()?;
    let terms = TierTerms {
        probes: probes.lines().map(str::to_owned).collect(),
        is_bounded: is_bounded != 0,
        rows: if copies != 0 { RowForm::Copy } else { RowForm::Json },
    };
    let tier = guarded(|| {
        let tier = match &state {
            Some(state) => Tier::restore(&job, &terms, state),
            None => Tier::open(&job, &terms),
        };
        tier.map_err(|fault| fault.to_string())
    })?;
    Ok(tiers(|tiers| {
        tiers.last += 1;
        tiers.all.insert(tiers.last, tier);
        tiers.last
    }))
}

/// `long open(String job, String probes, boolean bounded, boolean copies, byte[] state)`; names of
/// probes by line, no state where it is null.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
extern "system" fn Java_weir_engine_Native_open<'l>(
    mut env: JNIEnv<'l>,
    _: JClass<'l>,
    job: JString<'l>,
    probes: JString<'l>,
    is_bounded: jboolean,
    copies: jboolean,
    state: JByteArray<'l>,
) -> jlong {
    let opened = open(&mut env, [&job, &probes], [is_bounded, copies], &state);
    give(&mut env, opened, 0)
}

/// `long[] take(long handle, byte[] record, Lines to)`.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
extern "system" fn Java_weir_engine_Native_take<'l>(
    mut env: JNIEnv<'l>,
    _: JClass<'l>,
    handle: jlong,
    record: JByteArray<'l>,
    to: JObject<'l>,
) -> jlongArray {
    let record = bytes(&mut env, &record);
    let counted = record
        .and_then(|record| turn(&mut env, handle, &to, |tier, give| tier.take(&record, give)));
    counts(&mut env, counted)
}

/// `long[] finish(long handle, Lines to)`.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
extern "system" fn Java_weir_engine_Native_finish<'l>(
    mut env: JNIEnv<'l>,
    _: JClass<'l>,
    handle: jlong,
    to: JObject<'l>,
) -> jlongArray {
    let counted = turn(&mut env, handle, &to, |tier, give| tier.finish(give));
    counts(&mut env, counted)
}

/// `byte[] save(long handle)`.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
extern "system" fn Java_weir_engine_Native_save<'l>(
    mut env: JNIEnv<'l>,
    _: JClass<'l>,
    handle: jlong,
) -> jbyteArray {
    let saved = with(handle, Tier::save).and_then(|state| array(&mut env, &state));
    give(&mut env, saved, std::ptr::null_mut())
}

/// `byte[] progress(long handle)`: a line for each probe, its name, a tab, and how far it is as
/// JSON.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
extern "system" fn Java_weir_engine_Native_progress<'l>(
    mut env: JNIEnv<'l>,
    _: JClass<'l>,
    handle: jlong,
) -> jbyteArray {
    let told = with(handle, |tier| tier.progress_lines());
    let told = told.and_then(|told| array(&mut env, &told));
    give(&mut env, told, std::ptr::null_mut())
}

/// `void close(long handle)`; one that is closed may be closed again.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
extern "system" fn Java_weir_engine_Native_close<'l>(_: JNIEnv<'l>, _: JClass<'l>, handle: jlong) {
    // One that fails as it is dropped is gone, too.
    let tier = tiers(|tiers| tiers.all.remove(&handle));
    let _ = guarded(|| {
        drop(tier);
        Ok(())
    });
}
