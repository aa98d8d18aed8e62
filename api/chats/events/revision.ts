import type { Message } from '../../messages/schema.ts';
import { eventId, type Position } from './position.ts';

export const RETRY = Buffer.from('retry: 2000\n\n');
export const COMMENT = Buffer.from(':\n\n');
export const CLOSED = Buffer.from('event: chat.closed\ndata: {"type":"chat.closed"}\n\n');

/** A revision of an assistant message, ready to be written: its bytes are made once for all streams of the chat. */
export type Revision = Readonly<{
  /** An object of its own, so that keeping it does not keep the bytes. */
  position: Position;
  /** The event `chat.snapshot`: the first of a stream. */
  snapshot(): Buffer;
  /** The event `chat.message`: a later revision. */
  update(): Buffer;
}>;

function frame(type: string, id: string, json: string): Buffer {
  return Buffer.from(`id: ${id}\nevent: ${type}\ndata: {"type":"${type}","message":${json}}\n\n`);
}

export function createRevision(position: Position, message: Message): Revision {
  const id = eventId(position);
  // JSON has no line break of its own, so that one `data` line carries it.
  const json = JSON.stringify(message);
  let snapshot: Buffer | undefined;
  let update: Buffer | undefined;
  return {
    position,
    snapshot() {
      snapshot ??= frame('chat.snapshot', id, json);
      return snapshot;
    },
    update() {
      update ??= frame('chat.message', id, json);
      return update;
    },
  };
}
