/** The last four characters of an id; of a short one fewer, so that most of it stays hidden. */
export function maskedId(id: string): string {
  return `…${id.slice(id.length - Math.min(4, Math.floor(id.length / 2)))}`;
}

/** `a…@example.com`: which of their own addresses it is, a person sees from that. */
export function maskedEmail(email: string): string {
  const at = email.lastIndexOf('@');
  return at < 1 ? maskedId(email) : `${[...email][0]}…${email.slice(at)}`;
}
