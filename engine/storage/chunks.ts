import { Readable } from 'node:stream';

function iterate(source: Readable | AsyncIterable<Uint8Array>): AsyncIterator<Uint8Array> {
  // Leaving the loop must not destroy a request: its handler still has to send 413.
  if (source instanceof Readable) return source.iterator({ destroyOnReturn: false });
  return source[Symbol.asyncIterator]();
}

/** The next step, or the signal's reason as soon as it aborts: a source that has stopped sending never settles. */
function nextStep(iterator: AsyncIterator<Uint8Array>, signal: AbortSignal | undefined) {
  if (!signal) return iterator.next();
  // A promise of its own for each step: Promise.race against one long-lived promise would keep every chunk alive.
  return new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    iterator
      .next()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort));
  });
}

/**
 * Calls `take` with each chunk in order and waits for it before it reads on, so memory stays flat. An abort ends also
 * the wait for a silent source; the source is left as it is.
 * @throws the signal's reason, the error of the source, or what `take` throws.
 */
export async function eachChunk(
  source: Readable | AsyncIterable<Uint8Array>,
  take: (chunk: Uint8Array) => void | Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const iterator = iterate(source);
  let whole = false;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const step = await nextStep(iterator, signal);
      if (step.done) break;
      await take(step.value);
    }
    whole = true;
  } finally {
    // Not awaited: a silent source would hold it for ever.
    if (!whole) void iterator.return?.().catch(() => {});
  }
}
