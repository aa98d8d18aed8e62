import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { shellWord } from '../command/output.ts';
import { shortId } from '../command/references.ts';
import { OwnerApiError } from '../owner_call.ts';
import { printTimed } from '../terminal.ts';
import type { ActionApi, DemoAction } from './action_api.ts';
import type { DemoTask, OwnerApi } from './owner_api.ts';
import { DemoError } from './watch.ts';

const POLL_INTERVAL_MS = 200;
/** Where nobody is at the terminal: long enough to see that the task waits. */
const APPROVED_AFTER_MS = 1_500;
const TIMEOUT_MS = 60_000;
const FINAL_STATUSES = ['completed', 'failed', 'cancelled'];

export type Watched = Readonly<{
  owner: OwnerApi;
  actions: ActionApi;
  organizationId: string;
  /** Of the API, where whoever decides has to name it. */
  url: string | undefined;
  signal: AbortSignal;
}>;

/** Whether a person agrees: by Enter at a terminal, else after a moment. */
async function agreed(signal: AbortSignal): Promise<boolean> {
  const { stdin } = process;
  if (!stdin.isTTY) return sleep(APPROVED_AFTER_MS, true, { signal });
  printTimed('press Enter to approve it here, or approve it in another terminal');
  const lines = createInterface({ input: stdin, signal });
  const pressed = await new Promise<boolean>((resolve) => {
    lines.once('line', () => resolve(true));
    // An input that ends agrees to nothing.
    lines.once('close', () => resolve(false));
  });
  lines.close();
  return pressed;
}

/** Approves it, unless somebody has decided in another terminal. */
async function approve({ actions }: Watched, action: DemoAction): Promise<void> {
  await actions.approve(action).then(
    () => printTimed('you approve it'),
    (error: unknown) => {
      if (!(error instanceof OwnerApiError) || error.status !== 409) throw error;
    },
  );
}

/**
 * Follows a task until it is completed, and has its action approved on the way. Returns both.
 * @throws DemoError when it ends otherwise or takes too long; the reason of `signal`
 */
export async function watchAction(watched: Watched, task: DemoTask): Promise<{ task: DemoTask; action: DemoAction }> {
  const { owner, actions, organizationId, url, signal } = watched;
  const over = new AbortController();
  let deadline = performance.now() + TIMEOUT_MS;
  let told = '';
  let asked: Promise<void> | undefined;
  const tell = (text: string) => {
    if (text !== told) printTimed(text);
    told = text;
  };
  try {
    for (;;) {
      signal.throwIfAborted();
      const now = await owner.getTask(organizationId, task.id);
      const [action] = await actions.ofTask(task.id);
      if (action && FINAL_STATUSES.includes(now.status)) {
        if (now.status === 'completed') return { task: now, action };
        throw new DemoError(`${now.identifier} is ${now.status} instead of completed.`);
      }
      if (action) tell(`the action is ${action.status}`);
      if (action?.status === 'awaiting_approval') {
        if (asked === undefined) {
          printTimed(`${now.identifier}  proposes: ${action.summary}`);
          const place = `--org ${shellWord(organizationId)}${url === undefined ? '' : ` --url ${shellWord(url)}`}`;
          printTimed(`whoever decides runs: npx business-runner actions approve ${shortId(action.id)} ${place}`);
          asked = agreed(AbortSignal.any([signal, over.signal])).then((isMeant) =>
            isMeant && !over.signal.aborted ? approve(watched, action) : undefined,
          );
          // The loop ends by its own error.
          asked.catch(() => {});
        }
        // A person takes their time.
        deadline = performance.now() + TIMEOUT_MS;
      }
      if (performance.now() > deadline) {
        throw new DemoError(`${now.identifier} is still ${now.status}. Is dispatch stopped, or the API overloaded?`);
      }
      await sleep(POLL_INTERVAL_MS, undefined, { signal }).catch(() => {});
    }
  } finally {
    over.abort();
    await asked?.catch(() => {});
  }
}
