import { reads } from './reads.ts';
import { writes } from './writes.ts';

export const tools = [...reads, ...writes];
