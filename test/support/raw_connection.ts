import { connect, type Socket } from 'node:net';
import { until } from './wait.ts';

export type RawConnection = Readonly<{
  socket: Socket;
  send(bytes: string | Buffer): void;
  /** Everything that has come back. */
  received(): string;
  /** Waits until it matches. */
  receives(pattern: RegExp): Promise<void>;
  /** True once the other side has sent its half of the close. */
  ended(): boolean;
  closed(): boolean;
  error(): (Error & { code?: string }) | undefined;
}>;

/** A connection that sends and shows exact bytes; nothing of HTTP is done for it, and its half of the close stays open. */
export function rawConnection(url: string, options: { reads?: boolean } = {}): RawConnection {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  let text = '';
  let ended = false;
  let failed: Error | undefined;
  if (options.reads !== false) socket.setEncoding('latin1').on('data', (chunk) => (text += chunk));
  socket.on('end', () => {
    ended = true;
  });
  socket.on('error', (error) => {
    failed = error;
  });
  return {
    socket,
    send: (bytes) => void socket.write(bytes),
    received: () => text,
    receives: async (pattern) => {
      await until(`received ${pattern}`, () => pattern.test(text) || (socket.closed && `closed after: ${text}`));
      if (!pattern.test(text)) throw new Error(`closed after: ${text}`);
    },
    ended: () => ended,
    closed: () => socket.closed,
    error: () => failed,
  };
}

/** The status of each response in what came back, in order. */
export function statusesOf(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]));
}
