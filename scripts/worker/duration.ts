/** A duration in milliseconds as a person reads it: `1.5 s`. */
export const formatSeconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
