import type { NetReason } from '../net/index.ts';

/**
 * Why rates could not be read. Beside those of the network: `rate_limited` and `unavailable`, the bank responds so; `refused`, with
 * another status than 200; `malformed`, what came is no whole XML document; `unexpected`, it is not of the documented form.
 */
export type CurrencyRatesReason = NetReason | 'rate_limited' | 'unavailable' | 'refused' | 'malformed' | 'unexpected';

/** Rates could not be read, and nothing of them is to be stored. The message is for people. */
export class CurrencyRatesError extends Error {
  override name = 'CurrencyRatesError';
  readonly reason: CurrencyRatesReason;
  /** The bank asked not to be asked before. */
  readonly notBefore: Date | undefined;
  constructor(
    reason: CurrencyRatesReason,
    message: string,
    options: ErrorOptions & Readonly<{ notBefore?: Date | undefined }> = {},
  ) {
    super(message, options);
    this.reason = reason;
    this.notBefore = options.notBefore;
  }
}
