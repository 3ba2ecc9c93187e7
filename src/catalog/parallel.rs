//! A map over all cores, for work that needs no waiting.

/// Items below which threads cost more than they save.
const WORTH_THREADS: usize = 64;

/// Maps items on all cores, in order.
pub(super) fn parallel<T: Send, R: Send>(items: Vec<T>, map: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(8);
    if items.len() < WORTH_THREADS || threads < 2 {
        return items.into_iter().map(map).collect();
    }
    let size = items.len().div_ceil(threads);
    let mut items = items.into_iter();
    let chunks: Vec<Vec<T>> = (0..threads)
        .map(|_| items.by_ref().take(size).collect())
        .collect();
    std::thread::scope(|scope| {
        let map = &map;
        let running: Vec<_> = chunks
            .into_iter()
            .map(|chunk| scope.spawn(move || chunk.into_iter().map(map).collect::<Vec<R>>()))
            .collect();
        running
            .into_iter()
            .flat_map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}
