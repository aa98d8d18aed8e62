// A process that is frozen, or a host that is lost, would hold what its connections hold (row locks of a transaction, advisory
// locks) for as long as TCP does, a quarter of an hour and more. Both ends give such a connection up, so that others go on within
// fifteen seconds.

/** Of our end: Node asks once a second after the delay, and gives up after ten. Options of the driver. */
export const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 4_000 } as const;

/**
 * Of Postgres's end, in its words. None of our transactions waits for anything but the database, so one that is idle for so
 * long has lost its process. Over a socket of the same machine the settings of TCP do nothing.
 */
export const SERVER_LIMITS: Readonly<Record<string, string>> = {
  idle_in_transaction_session_timeout: '10s',
  tcp_keepalives_idle: '4',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '2',
  // In ms. For what was sent and is not received: keep-alives are for silence.
  tcp_user_timeout: '8000',
};
