import { z } from 'zod';
import {
  bankDay,
  type CurrencyRatesClient,
  CurrencyRatesError,
  createCurrencyRatesClient,
  type DayRates,
  dayAfter,
  documentFor,
  nextLook,
  type RatesDocument,
} from '../../engine/currency_rates/index.ts';
import { call } from '../../engine/db/call.ts';
import { COLLECT } from '../crontab.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';

/** Longer than the bank's longest document takes, and the storing of it. */
const LEASE_SECONDS = 240;
/** Days in a transaction: the history has some 7,000, with up to 41 currencies each. */
const BATCH_DAYS = 500;
/** Between two ticks, so that the next one finds it due; doubled with each failure in a row. */
const FIRST_BACKOFF_SECONDS = 20 * 60;
const LONGEST_BACKOFF_SECONDS = 6 * 60 * 60;

const claimSchema = z.discriminatedUnion('claimed', [
  z.object({ claimed: z.literal(false), leaseExpiresAt: z.coerce.date().nullable() }),
  z.object({
    claimed: z.literal(true),
    fence: z.int(),
    newestDay: z.iso.date().nullable(),
    historyLoadedAt: z.coerce.date().nullable(),
    now: z.coerce.date(),
  }),
]);
type Claim = Extract<z.output<typeof claimSchema>, { claimed: true }>;

const storedSchema = z.object({
  held: z.boolean(),
  added: z.int(),
  differing: z.int(),
  replaced: z.array(z.object({ currency: z.string(), day: z.string(), was: z.string(), rate: z.string() })),
});
const failedSchema = z.object({ held: z.boolean(), isNew: z.boolean(), failureCount: z.int(), dueAt: z.string() });

/** What became of a document. `incomplete`: the history has to be read. */
type Stored = 'done' | 'incomplete' | 'lost';

async function store(
  { db, log, signal }: JobContext,
  { fence, newestDay, now }: Claim,
  document: RatesDocument,
  days: readonly DayRates[],
): Promise<Stored> {
  const isHistory = document === 'history';
  const oldest = days.at(-1)?.day;
  // It does not reach back to what is known: days between them are missing.
  if (document === 'recent' && (oldest ?? '') > (newestDay ?? '')) return 'incomplete';
  const newest = [newestDay ?? '', days[0]?.day ?? ''].toSorted().at(-1) ?? '';
  const dueAt = nextLook(newest, now).toISOString();
  let added = 0;
  // Newest first: the rates that are asked for most are there first.
  for (let from = 0; from < days.length; from += BATCH_DAYS) {
    signal.throwIfAborted();
    const isLast = from + BATCH_DAYS >= days.length;
    const batch = days.slice(from, from + BATCH_DAYS);
    const args = { fence, days: batch, isHistory, dueAt: isLast ? dueAt : null };
    const stored = await call(db, 'currency_rates_store', args, storedSchema);
    if (!stored.held) return 'lost';
    added += stored.added;
    if (stored.replaced.length > 0) {
      const { length } = stored.replaced;
      log.warn(
        { rates: stored.replaced.slice(0, 20), length },
        'the bank has corrected rates: receipts keep the old ones',
      );
    }
    if (!isHistory && stored.differing > 0) return 'incomplete';
  }
  log.info({ document, days: days.length, added, newestDay: newest, dueAt }, 'currency rates are read');
  return 'done';
}

async function look(context: JobContext, claim: Claim, client: CurrencyRatesClient): Promise<void> {
  // A clock that is a few hours behind must not refuse what is published.
  const lastDay = dayAfter(bankDay(claim.now), 1);
  const read = (document: RatesDocument) => client.read(document, lastDay, context.signal);
  const document = documentFor(claim, claim.now);
  let stored = await store(context, claim, document, await read(document));
  if (stored === 'incomplete') stored = await store(context, claim, 'history', await read('history'));
  if (stored === 'lost') context.log.info('another process reads the currency rates by now');
}

async function fail({ db, log }: JobContext, { fence }: Claim, error: CurrencyRatesError): Promise<void> {
  const { reason: code, message, notBefore } = error;
  const failed = await call(
    db,
    'currency_rates_fail',
    {
      fence,
      errorCode: code,
      notBefore: notBefore?.toISOString(),
      firstSeconds: FIRST_BACKOFF_SECONDS,
      longestSeconds: LONGEST_BACKOFF_SECONDS,
    },
    failedSchema,
  );
  const { isNew, failureCount, dueAt } = failed;
  const facts = { code, reason: message, failureCount, dueAt };
  // Without the internet it fails for as long as that lasts: who reads the log is told once.
  if (isNew) log.warn(facts, 'currency rates were not read, and are looked for again; CURRENCY_RATES=off ends that');
  else log.debug(facts, 'currency rates were not read again');
}

/**
 * Reads the reference rates of currencies where that is due: at first all of them, then those of each working day. One process of all
 * does. Dead anywhere, it is still due, and what is stored already changes nothing when it comes again.
 */
export const currencyRatesCollect: JobHandler<'currency_rates__collect'> = async (_payload, context) => {
  const { config, db, addJob, signal } = context;
  if (config.currencyRates === 'off' || signal.aborted) return 'done';
  const claim = await call(db, 'currency_rates_claim', { seconds: LEASE_SECONDS }, claimSchema);
  if (!claim.claimed) {
    const { leaseExpiresAt } = claim;
    // Whoever has the lease may be dead: it is looked at once more when that ends.
    if (leaseExpiresAt) await addJob('currency_rates__collect', {}, { key: COLLECT.key, runAt: leaseExpiresAt });
    return 'done';
  }
  const client = createCurrencyRatesClient({
    allowPrivateAddresses: config.allowPrivateAddresses,
    origins: config.integrations.providerOrigins,
  });
  try {
    await look(context, claim, client);
  } catch (error) {
    if (signal.aborted) return 'unfinished';
    if (!(error instanceof CurrencyRatesError)) throw error;
    await fail(context, claim, error);
  } finally {
    await client.close();
  }
  return 'done';
};
