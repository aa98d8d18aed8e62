/** How long the server waits for clients that are slow, and how much it reads in vain. Tests shorten it. */
export type HttpTiming = Readonly<{
  /** Until the headers of a request are complete. */
  headersMs: number;
  /** How often connections are looked at for that. */
  checkMs: number;
  /** What any body may take; a longer one has to arrive at `bodyBytesPerSecond` from then on, on average. */
  bodyMs: number;
  bodyBytesPerSecond: number;
  /** The longest pause in a body. */
  pauseMs: number;
  /** Of a body whose response is sent already: what is read, and for how long, before the connection is closed. */
  restBytes: number;
  restMs: number;
  /** How long the client then has to read the response and to close from its side. */
  lingerMs: number;
}>;

/** docs/interface.md 8.1 */
export const TIMING: HttpTiming = {
  headersMs: 20_000,
  checkMs: 5_000,
  bodyMs: 30_000,
  bodyBytesPerSecond: 16 * 1024,
  pauseMs: 60_000,
  restBytes: 32 * 1024 * 1024,
  restMs: 2_000,
  lingerMs: 2_000,
};
