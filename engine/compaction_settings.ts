import { integer } from './setting_values.ts';

/** The settings by which files of facts are merged and removed, as rows of engine/settings.ts (docs/interface.md, 8). */
export const compactionSettings = {
  INSIGHT_COMPACTION_FILES: {
    schema: integer(2, 1_000),
    default: '128',
    help: 'as many files of facts of one source and month are merged at once',
  },
  INSIGHT_COMPACTION_BYTES: {
    schema: integer(1_024, 67_108_864),
    default: '67108864',
    help: 'how large they are together at most, in bytes',
  },
  INSIGHT_COMPACTION_ROWS: {
    schema: integer(2, 250_000),
    default: '100000',
    help: 'how many facts they have together at most',
  },
  INSIGHT_COMPACTION_SECONDS: { schema: integer(1, 600), default: '30', help: 'how long that may take' },
  INSIGHT_KEEP_HOURS: {
    schema: integer(24, 8_760),
    default: '24',
    help: 'how long files of facts stay that nothing reads any more',
  },
} as const;
