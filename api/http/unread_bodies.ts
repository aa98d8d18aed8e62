import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HttpTiming } from './timing.ts';

/**
 * Closing a socket that holds unread data resets the connection. The reset overtakes the response: a client that writes gets
 * EPIPE from it before it has read. So what a client still sends after its response is read and dropped, up to a bound; then
 * comes our half of the close, and the client has time for its half.
 */
const closing = new WeakSet<Socket>();
const answered = new WeakSet<Socket>();

/** True from the response that is the last of its connection; what the client sends after it is not served. */
export function isClosing(socket: Socket): boolean {
  return closing.has(socket);
}

/** True while the rest of a body arrives whose response is sent. */
export function isAnswered(socket: Socket): boolean {
  return answered.has(socket);
}

/** Sends what is written and our half of the close, and cuts the connection when the client's half does not come. */
export function closeHalf(socket: Socket, timing: HttpTiming): void {
  closing.add(socket);
  if (socket.writableEnded) return;
  socket.end();
  const late = setTimeout(() => socket.destroy(), timing.lingerMs);
  socket.once('close', () => clearTimeout(late));
}

/** Reads the rest of a body whose response was sent. */
function dropRest(req: IncomingMessage, timing: HttpTiming): void {
  const { socket } = req;
  let size = 0;
  const stop = (): void => {
    clearTimeout(timer);
    req.off('data', onData).off('end', onEnd);
    socket.off('close', stop);
    answered.delete(socket);
    Reflect.deleteProperty(socket, 'destroySoon');
  };
  const close = (): void => {
    stop();
    closeHalf(socket, timing);
  };
  function onData(chunk: Buffer): void {
    size += chunk.length;
    if (size <= timing.restBytes) return;
    // Unread from here on, the rest holds up the client's writes: it turns to what it can read.
    req.pause();
    close();
  }
  const onEnd = (): void => (closing.has(socket) ? close() : stop());
  // Where the connection is kept: the next request comes after the rest, which has the time of any body.
  let timer = setTimeout(close, timing.bodyMs);
  answered.add(socket);
  socket.once('close', stop);
  // Called by Node after the last response of the connection.
  socket.destroySoon = () => {
    closing.add(socket);
    clearTimeout(timer);
    timer = setTimeout(close, timing.restMs);
  };
  req.on('data', onData).once('end', onEnd).resume();
}

/** Has the rest of the body of `req` read in case that its response comes first. */
export function readRest(req: IncomingMessage, res: ServerResponse, timing: HttpTiming): void {
  const length = req.headers['content-length'];
  if (req.headers['transfer-encoding'] === undefined && (length === undefined || Number(length) === 0)) return;
  // Before Node's own listener, which closes the connection.
  res.prependOnceListener('finish', () => {
    if (!req.complete && !req.socket.destroyed) dropRest(req, timing);
  });
}
