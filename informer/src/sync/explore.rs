//! [`explore`]: runs the threads of a model in every order of their steps.
//!
//! One thread runs at a time, from one [`step`] to the next. At each step a schedule chooses the
//! thread that continues; the schedules are enumerated depth first, up to a number of preemptions.
//! A thread whose future waits runs again after its waker was called. If every thread waits, a
//! wake-up was lost: the model fails.
//!
//! A thread must not take a step while it holds a lock, because another thread may then wait for
//! that lock outside of the schedule. loom does the same for atomics and nested locks; this module
//! does it for code that is compiled with all dependencies of the informer.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use parking_lot::{Condvar, Mutex};

/// The threads of one execution, and the check that follows them.
#[derive(Default)]
pub(crate) struct Model {
    threads: Vec<Box<dyn FnOnce() + Send>>,
    check: Option<Box<dyn FnOnce()>>,
}

/// The threads of a running execution, which takes its first choices from a schedule.
struct Scheduler {
    run: Mutex<Run>,
    /// Notified when another thread may continue.
    changed: Condvar,
}

struct Run {
    threads: Vec<State>,
    /// The thread that runs.
    current: usize,
    /// Preemptions that are left.
    preemptions: usize,
    /// The choices to repeat.
    schedule: Vec<usize>,
    /// Each choice so far: its number, and the number of threads to choose from.
    choices: Vec<(usize, usize)>,
    /// The first panic of a thread. The others then run freely to their ends.
    panic: Option<Box<dyn Any + Send>>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// It runs, or waits for its turn.
    Ready,
    /// The same, and its waker was called since it was polled.
    Woken,
    /// Its future waits for a call of its waker.
    Waiting,
    Ended,
}

/// Wakes the future of a thread.
struct ThreadWaker(Arc<Scheduler>, usize);

thread_local! {
    /// The execution of this thread and its number in it.
    static THREAD: RefCell<Option<(Arc<Scheduler>, usize)>> = const { RefCell::new(None) };
}

/// Runs the model in every order of its steps with at most `preemptions` preemptions (a wait is not
/// a preemption), and asserts that there are at least `least` orders.
#[expect(clippy::print_stdout, reason = "prints the number of explored executions")]
pub(crate) fn explore(name: &str, preemptions: usize, least: usize, model: impl Fn(&mut Model)) {
    let (mut schedule, mut executions) = (Vec::new(), 0);
    loop {
        executions += 1;
        let mut threads = Model::default();
        model(&mut threads);
        let mut made = Scheduler::run(threads, schedule, preemptions);
        while made.pop_if(|(choice, options)| *choice + 1 == *options).is_some() {}
        let Some((deepest, _)) = made.last_mut() else { break };
        *deepest += 1;
        schedule = made.iter().map(|(choice, _)| *choice).collect();
    }
    println!("{name}: {executions} executions, at most {preemptions} preemptions");
    assert!(executions >= least, "{name}: only {executions} executions");
}

/// Lets another thread of the model continue, if the schedule says so. Outside of a model it does
/// nothing.
pub(super) fn step() {
    if let Some((scheduler, thread)) = THREAD.with_borrow(Clone::clone) {
        let mut run = scheduler.run.lock();
        run.choose();
        scheduler.wait_for_turn(&mut run, thread);
    }
}

/// Runs a future to its end. While it waits, the other threads of the model run.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let (scheduler, thread) = THREAD.with_borrow(Clone::clone).expect("a thread of a model");
    let waker = Waker::from(Arc::new(ThreadWaker(Arc::clone(&scheduler), thread)));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut run = scheduler.run.lock();
        assert!(run.panic.is_none(), "another thread of the model has panicked");
        run.threads[thread] = match run.threads[thread] {
            State::Woken => State::Ready,
            _ => State::Waiting,
        };
        run.choose();
        scheduler.wait_for_turn(&mut run, thread);
        run.threads[thread] = State::Ready;
    }
}

// === impl Model ===

impl Model {
    /// Adds a thread.
    pub(crate) fn thread(&mut self, work: impl FnOnce() + Send + 'static) {
        self.threads.push(Box::new(work));
    }

    /// Sets what is checked after all threads have ended.
    pub(crate) fn afterwards(&mut self, check: impl FnOnce() + 'static) {
        self.check = Some(Box::new(check));
    }
}

// === impl Scheduler ===

impl Scheduler {
    /// Runs an execution, and returns its choices.
    ///
    /// # Panics
    ///
    /// If a thread panics, or if all threads wait.
    fn run(model: Model, schedule: Vec<usize>, preemptions: usize) -> Vec<(usize, usize)> {
        let scheduler = Arc::new(Self {
            run: Mutex::new(Run {
                threads: vec![State::Ready; model.threads.len()],
                current: 0,
                preemptions,
                schedule,
                choices: Vec::new(),
                panic: None,
            }),
            changed: Condvar::new(),
        });
        thread::scope(|scope| {
            for (number, work) in model.threads.into_iter().enumerate() {
                let scheduler = Arc::clone(&scheduler);
                scope.spawn(move || scheduler.run_thread(number, work));
            }
        });
        let mut run = scheduler.run.lock();
        if let Some(panic) = run.panic.take() {
            match panic.downcast::<String>() {
                Ok(text) => panic!("{text}"),
                Err(panic) => resume_unwind(panic),
            }
        }
        let choices = std::mem::take(&mut run.choices);
        drop(run);
        model.check.into_iter().for_each(|check| check());
        choices
    }

    fn run_thread(self: Arc<Self>, thread: usize, work: Box<dyn FnOnce() + Send>) {
        self.wait_for_turn(&mut self.run.lock(), thread);
        THREAD.set(Some((Arc::clone(&self), thread)));
        let ended = catch_unwind(AssertUnwindSafe(work));
        THREAD.set(None);
        let mut run = self.run.lock();
        run.threads[thread] = State::Ended;
        if let Err(panic) = ended {
            run.panic.get_or_insert(panic);
        }
        run.choose();
        self.changed.notify_all();
    }

    /// Waits until the schedule has chosen this thread, or until a thread has panicked.
    fn wait_for_turn(&self, run: &mut parking_lot::MutexGuard<'_, Run>, thread: usize) {
        self.changed.notify_all();
        while run.current != thread && run.panic.is_none() {
            self.changed.wait(run);
        }
    }
}

// === impl Run ===

impl Run {
    /// Chooses the thread that continues: the current one is the first choice, as long as it does
    /// not wait.
    fn choose(&mut self) {
        if self.panic.is_some() || self.threads.iter().all(|state| *state == State::Ended) {
            return;
        }
        let can_run = |thread: &usize| matches!(self.threads[*thread], State::Ready | State::Woken);
        let goes_on = can_run(&self.current);
        let others =
            (0..self.threads.len()).filter(|thread| *thread != self.current && can_run(thread));
        let others = others.filter(|_| !goes_on || self.preemptions > 0);
        let options: Vec<_> = goes_on.then_some(self.current).into_iter().chain(others).collect();
        if options.is_empty() {
            self.panic = Some(Box::new(format!("every thread waits after {:?}", self.choices)));
            return;
        }
        let choice = self.schedule.get(self.choices.len()).copied().unwrap_or(0);
        self.choices.push((choice, options.len()));
        self.preemptions -= usize::from(goes_on && choice > 0);
        self.current = options[choice];
    }
}

// === impl ThreadWaker ===

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        let mut run = self.0.run.lock();
        let state = &mut run.threads[self.1];
        *state = match *state {
            State::Ended => State::Ended,
            _ => State::Woken,
        };
    }
}
