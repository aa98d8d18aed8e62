import type { Caller } from './caller.ts';

/** `actor` of a transition that owners and agents share: judged inside it, under its locks. */
export function actorOf(caller: Caller) {
  if (caller.kind === 'capability') return { kind: 'capability', tokenHash: caller.tokenHash };
  return { kind: caller.kind === 'service' ? 'service' : 'owner' };
}
