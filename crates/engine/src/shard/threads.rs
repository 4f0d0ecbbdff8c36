//! The threads of workers, which stay as long as the run, whichever programs it runs.
//!
//! An allocator keeps the memory that a thread has freed for later threads, in pools that threads
//! take over from each other. If each change of programs started new threads, a run that changes
//! often would in time hold, in every pool, as much memory as a worker needs.

use std::sync::mpsc::{self, Sender};
use std::thread::Scope;

/// Something for a thread to do. It catches its panics.
type Task<'scope> = Box<dyn FnOnce() + Send + 'scope>;

/// Threads that wait for tasks. They end when this is dropped.
pub(crate) struct WorkerThreads<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    tasks: Vec<Sender<Task<'scope>>>,
}

impl<'scope, 'env> WorkerThreads<'scope, 'env> {
    /// None so far: each is started when it gets its first task.
    pub(crate) fn new(scope: &'scope Scope<'scope, 'env>) -> WorkerThreads<'scope, 'env> {
        WorkerThreads { scope, tasks: Vec::new() }
    }

    /// Has thread `number` do this, after the tasks that it has.
    pub(super) fn start(&mut self, number: usize, task: impl FnOnce() + Send + 'scope) {
        while self.tasks.len() <= number {
            let (tasks, next) = mpsc::channel::<Task<'scope>>();
            self.scope.spawn(move || next.into_iter().for_each(|task| task()));
            self.tasks.push(tasks);
        }
        let sent = self.tasks[number].send(Box::new(task));
        assert!(sent.is_ok(), "a thread ends when it gets no more tasks");
    }
}
