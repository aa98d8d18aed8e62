/** A token bucket: calls of one provider account, or of this deployment's client. */
export type Bucket = Readonly<{
  /** Names it for all processes: provider, kind and subject, no secret. */
  key: string;
  /** Calls at once after a pause. */
  capacity: number;
  /** How fast it fills again. */
  perSecond: number;
  /** All organizations take from it: what a provider says of its limits holds it for a minute at most. */
  isShared?: boolean;
}>;

/**
 * Token buckets that all processes share. What a provider said about its limits is kept with them, so that no process asks
 * before its time.
 */
export type Budgets = Readonly<{
  /**
   * Takes one call out of all buckets, or out of none.
   * @returns undefined when it may be sent now, else when it may be tried again
   */
  take(buckets: readonly Bucket[]): Promise<Date | undefined>;
  /** The provider limits calls of these buckets until then. A time that lies before the known one changes nothing. */
  postpone(buckets: readonly Bucket[], until: Date): Promise<void>;
}>;
