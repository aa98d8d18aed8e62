import { json } from '../../engine/db/call.ts';
import type { Caller } from './caller.ts';

/** `p_actor` of a transition that owners and agents share: judged inside it, under its locks. */
export function actorOf(caller: Caller) {
  if (caller.kind === 'capability') return json({ kind: 'capability', tokenHash: caller.tokenHash });
  return json({ kind: caller.kind === 'service' ? 'service' : 'owner' });
}
