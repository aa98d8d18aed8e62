// For `node --expose-gc --import`: tells the parent, when it asks, how many bytes are in use in the old generation, and how
// many are resident.
import { getHeapSpaceStatistics } from 'node:v8';

const collect = globalThis.gc;
if (!collect) throw new Error('run with --expose-gc');

function oldBytes(): number {
  // What is young and held by nothing goes; what is held is old after the second time.
  collect?.({ type: 'minor' });
  collect?.({ type: 'minor' });
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')?.space_used_size ?? 0;
}

process.on('message', (message: { type?: string }) => {
  if (message.type === 'old generation') process.send?.({ type: message.type, bytes: oldBytes() });
  if (message.type === 'resident') process.send?.({ type: message.type, bytes: process.memoryUsage.rss() });
});
