import { runReset } from './reset/run.ts';

await runReset();
