import { addAbortSignal, Readable } from 'node:stream';

/**
 * The body of a response, whose failures are what `translate` makes of them. Destroying it ends the connection, so that
 * nobody reads on for a client that has gone.
 */
export function bodyStream(
  body: Readable,
  translate: (error: unknown) => unknown,
  signal: AbortSignal | undefined,
): Readable {
  const stream = new Readable({
    read: () => void body.resume(),
    destroy(error, done) {
      body.destroy();
      const translated = error === null || signal?.aborted ? error : translate(error);
      done(translated instanceof Error ? translated : error);
    },
  });
  body.pause();
  body.on('data', (chunk) => {
    if (!stream.push(chunk)) body.pause();
  });
  body.on('end', () => stream.push(null));
  body.on('error', (error) => stream.destroy(error));
  body.on('close', () => {
    if (!body.readableEnded) stream.destroy(new Error('the response ended early'));
  });
  return signal ? addAbortSignal(signal, stream) : stream;
}
