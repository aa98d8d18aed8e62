/** What a task was asked for, and which one was confirmed. */
export type CreatedTask = Readonly<{ organizationId: string; title: string; kind: 'task' | 'initiative'; id: string }>;

/** A call of a worker that was confirmed: from then on it may not be forgotten. */
export type ConfirmedStart = Readonly<{ organizationId: string; runId: string; attempt: number }>;
export type ConfirmedEnd = Readonly<{ organizationId: string; runId: string; status: string }>;

/** What this side saw in a round; the database is judged against it. */
export type Facts = Readonly<{
  created: readonly CreatedTask[];
  starts: readonly ConfirmedStart[];
  ends: readonly ConfirmedEnd[];
  /** How often each fault, and each trick of the workers and the owner, took place. */
  counts: ReadonlyMap<string, number>;
  /** What must not be and was seen on the way, by rule. */
  violations: ReadonlyMap<string, readonly unknown[]>;
}>;

export type Recorder = Facts &
  Readonly<{
    create: (task: CreatedTask) => void;
    start: (start: ConfirmedStart) => void;
    end: (end: ConfirmedEnd) => void;
    count: (what: string) => void;
    /** At most twenty a rule are kept: a broken rule tends to be broken often. */
    violation: (rule: string, what: unknown) => void;
  }>;

const KEPT = 20;

export function createRecorder(): Recorder {
  const created: CreatedTask[] = [];
  const starts: ConfirmedStart[] = [];
  const ends: ConfirmedEnd[] = [];
  const counts = new Map<string, number>();
  const violations = new Map<string, unknown[]>();
  return {
    created,
    starts,
    ends,
    counts,
    violations,
    create: (task) => void created.push(task),
    start: (start) => void starts.push(start),
    end: (end) => void ends.push(end),
    count: (what) => void counts.set(what, (counts.get(what) ?? 0) + 1),
    violation(rule, what) {
      const known = violations.get(rule) ?? [];
      violations.set(rule, known);
      if (known.length < KEPT) known.push(what);
    },
  };
}
