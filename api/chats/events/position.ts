/** Which revision of which assistant message: what a client has seen, or a chat has come to. */
export type Position = Readonly<{
  messageId: string;
  /** When the message was created, in microseconds since 1970: rises from message to message inside a chat. */
  order: number;
  revision: number;
}>;

/** Before the first assistant message. */
export const NOWHERE: Position = { messageId: '', order: -1, revision: 0 };

export function isAfter(a: Position, b: Position): boolean {
  return a.order > b.order || (a.order === b.order && a.revision > b.revision);
}

const format = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([1-9][0-9]{0,9})$/i;

export type EventId = Readonly<{ messageId: string; revision: number }>;

/** `<assistantMessageId>:<revision>` of a `Last-Event-ID` (docs/interface.md 6.2); undefined for what we never gave out. */
export function parseEventId(header: string | undefined): EventId | undefined {
  const [, messageId, revision] = format.exec(header ?? '') ?? [];
  if (messageId === undefined) return undefined;
  return { messageId: messageId.toLowerCase(), revision: Number(revision) };
}

export function eventId(position: EventId): string {
  return `${position.messageId}:${position.revision}`;
}
