// For `node --expose-gc --import`: tells the parent, when it asks, how many bytes are in use in the old generation.
import { getHeapSpaceStatistics } from 'node:v8';

const collect = globalThis.gc;
if (!collect) throw new Error('run with --expose-gc');

process.on('message', (message: { type?: string }) => {
  if (message.type !== 'old generation') return;
  // What is young and held by nothing goes; what is held is old after the second time.
  collect({ type: 'minor' });
  collect({ type: 'minor' });
  const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space');
  process.send?.({ type: 'old generation', bytes: space?.space_used_size });
});
