/** Sends a message to the process that started us, where one listens. One that goes meanwhile is no error. */
export function tellParent(message: Readonly<{ type: string; [field: string]: unknown }>): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}
