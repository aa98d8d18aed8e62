import { parentPort, workerData } from 'node:worker_threads';

/** One request again and again, by `fetch` in a thread of its own: a server in the same one would never be overtaken. */
export type FetchRounds = Readonly<{
  url: string;
  method: string;
  headers: Readonly<Record<string, string>>;
  /** A multiple of 64 KiB. */
  bytes: number;
  /** With a length, or chunked. */
  framing: 'length' | 'chunked';
  rounds: number;
  /** Asked for between the rounds, by the same connections. */
  between: string;
}>;

const PIECE = new Uint8Array(64 * 1024).fill(120);
const { bytes: size } = workerData as FetchRounds;
/** Sent piece by piece under its length. One that is whole would be copied for each request. */
const piece = new Blob([PIECE]);
const blob = new Blob(Array.from({ length: size / PIECE.length }, () => piece));

function chunked(bytes: number): ReadableStream<Uint8Array> {
  let left = bytes;
  return new ReadableStream({
    pull(controller) {
      const size = Math.min(left, PIECE.length);
      left -= size;
      if (size === 0) controller.close();
      else controller.enqueue(PIECE.subarray(0, size));
    },
  });
}

async function once({ url, method, headers, bytes, framing }: FetchRounds): Promise<string> {
  const body = framing === 'length' ? { body: blob } : { body: chunked(bytes), duplex: 'half' };
  try {
    const response = await fetch(url, { method, headers, ...body } as RequestInit);
    const { error } = (await response.json()) as { error?: { code: string } };
    return `${response.status} ${error?.code}`;
  } catch (error) {
    const { message, cause } = error as Error & { cause?: { code?: string } };
    return `${message}: ${cause?.code ?? String(cause)}`;
  }
}

/** Outcomes, with how often there was each. */
async function run(given: FetchRounds): Promise<Record<string, number>> {
  const outcomes: Record<string, number> = {};
  for (let round = 0; round < given.rounds; round += 1) {
    const outcome = await once(given);
    const { status } = await fetch(given.between);
    const both = status === 200 ? outcome : `${outcome}, then ${status}`;
    outcomes[both] = (outcomes[both] ?? 0) + 1;
  }
  return outcomes;
}

parentPort?.postMessage(await run(workerData as FetchRounds));
